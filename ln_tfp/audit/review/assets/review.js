'use strict';
(() => {
  const find = (id) => document.getElementById(id);
  const audit = JSON.parse(find('audit').textContent);
  const {names, items} = audit;
  const storageKey = `ln_tfp audit ${audit.fingerprint}`;
  const stripSize = 48;
  const signs = {keep: '✓', accept: '→', class: '→', unsure: '?', remove: '×'};
  const words = {
    keep: 'kept', accept: 'suggestion accepted', class: 'another class',
    unsure: 'cannot say', remove: 'removed',
  };

  // What has been decided: position -> {kind, label}, label an index or null.
  const decisions = new Map();
  const past = [];  // [position, decision before], for undo
  let view = [];    // the items in the chosen order, filtered
  let current = 0;  // index into view

  const add = (parent, tag, name, text) => {
    const element = document.createElement(tag);
    if (name) element.className = name;
    if (text !== undefined) element.textContent = text;
    return parent.appendChild(element);
  };

  // ---- What an example looks like.

  const text = (position) => (audit.rows[position] || [])
      .map(([column, cell]) => `${column}: ${cell}`).join('\n');

  const addPicture = (parent, position, alt) => {
    const image = add(parent, 'img', audit.pixels[position] ? 'small' : '');
    image.alt = alt;
    image.src = audit.pictures[position];
    return image;
  };

  const showSubject = (item) => {
    const subject = find('subject');
    subject.replaceChildren();
    if (audit.pictures[item.position]) {
      addPicture(subject, item.position, `Example ${item.id}`);
    }
    const row = audit.rows[item.position];
    if (row) {
      const list = add(subject, 'dl', 'row');
      list.tabIndex = 0;
      list.setAttribute('aria-label', `Example ${item.id}`);
      row.forEach(([column, cell]) => {
        add(list, 'dt', '', column);
        add(list, 'dd', '', cell);
      });
    }
    find('identity').textContent = item.id;
  };

  const showReasons = (item) => {
    const reasons = find('reasons');
    reasons.replaceChildren();
    [[item.near[0], item.given], [item.near[1], item.suggested]].forEach(
        ([positions, label]) => {
          if (!positions.length) return;
          const part = add(reasons, 'div');
          const heading = add(part, 'h4', '', 'Most similar with the label ');
          add(heading, 'strong', '', names[label]);
          const list = add(part, 'ul');
          positions.forEach((position) => {
            const entry = add(list, 'li');
            if (audit.pictures[position]) {
              addPicture(entry, position, `Similar example, ${names[label]}`);
            } else {
              add(entry, 'div', 'text', text(position));
            }
          });
        });
  };

  // ---- The stage: one example, and what can be decided about it.

  const percent = (share) => share > .999 ? '> 99.9 %' :
      share < .001 ? '< 0.1 %' :
      `${(100 * share).toFixed(share < .1 || share > .99 ? 1 : 0)} %`;

  const labelOf = (item) => {
    const decision = decisions.get(item.position);
    return decision && decision.label !== null ? decision.label : -1;
  };

  const showChoices = (item) => {
    const list = find('choices');
    list.replaceChildren();
    item.nearest.forEach(([label, share], i) => {
      const button = add(add(list, 'li'), 'button');
      button.type = 'button';
      const role = label === item.given ? 'given' :
          label === item.suggested ? 'suggested' : '';
      if (role) button.classList.add(`is-${role}`);
      button.setAttribute('aria-pressed', String(labelOf(item) === label));
      button.setAttribute('aria-keyshortcuts', String(i + 1));
      add(button, 'kbd', '', String(i + 1));
      const name = add(button, 'span', '', names[label]);
      if (role) add(name, 'span', 'tag', ` ${role}`);
      const meter = add(button, 'span', 'meter');
      meter.setAttribute('aria-hidden', 'true');
      add(meter, 'span').style.width = `${100 * share}%`;
      add(button, 'span', 'share', percent(share));
      button.addEventListener('click', () => choose(label));
    });
  };

  const showStage = () => {
    const stage = find('stage');
    const item = view[current];
    stage.classList.toggle('empty', !item);
    [...stage.children].forEach((part) => { part.hidden = !item; });
    if (!item) return;
    showSubject(item);
    const claim = find('claim');
    claim.replaceChildren('Given ');
    add(claim, 'span', 'given', names[item.given]);
    claim.append(', suggested ');
    add(claim, 'span', 'suggested', names[item.suggested]);
    claim.append(`. Wrong with probability ${percent(item.wrong)}.`);
    showChoices(item);
    find('keep').querySelector('.what').textContent =
        `Keep ${names[item.given]}`;
    find('accept').querySelector('.what').textContent =
        `Change to ${names[item.suggested]}`;
    const decision = decisions.get(item.position);
    ['keep', 'accept', 'unsure', 'remove'].forEach((kind) =>
      find(kind).setAttribute(
          'aria-pressed', String(Boolean(decision) && decision.kind === kind)));
    find('other').value = decision && decision.kind === 'class' ?
        String(decision.label) : '';
    showReasons(item);
  };

  // ---- The strip: where we are in the order, and what is decided.

  const showStrip = () => {
    const list = find('strip');
    list.replaceChildren();
    const first = current - current % stripSize;
    view.slice(first, first + stripSize).forEach((item, i) => {
      const button = add(add(list, 'li'), 'button');
      button.type = 'button';
      const decision = decisions.get(item.position);
      const state = decision ? words[decision.kind] : 'undecided';
      button.setAttribute('aria-label', `${item.id}, given ` +
          `${names[item.given]}, suggested ${names[item.suggested]}, ${state}`);
      button.title = item.id;
      if (first + i === current) button.setAttribute('aria-current', 'true');
      if (audit.pictures[item.position]) {
        addPicture(button, item.position, '');
      } else {
        add(button, 'span', 'text', text(item.position) || item.id);
      }
      add(button, 'span', 'names',
          `${names[item.given]} → ${names[item.suggested]}`);
      if (decision) {
        add(button, 'span', `badge ${decision.kind}`, signs[decision.kind]);
      }
      button.addEventListener('click', () => move(first + i - current));
    });
    const item = view[current];
    find('position').textContent = item ?
        `${current + 1} of ${view.length}` : 'none';
    find('previous').disabled = current <= 0;
    find('next').disabled = current >= view.length - 1;
  };

  // Wilson's interval, at 95 %.
  const interval = (hits, num) => {
    const z2 = 1.96 ** 2;
    const centre = (hits + z2 / 2) / (num + z2);
    const half = Math.sqrt(z2 * (hits * (num - hits) / num + z2 / 4)) /
        (num + z2);
    return [Math.max(0, centre - half), Math.min(1, centre + half)];
  };

  const controlText = () => {
    const kinds = items.filter((item) => item.control >= 0)
        .map((item) => (decisions.get(item.position) || {}).kind);
    const wrong = kinds.filter((k) => k === 'accept' || k === 'class').length;
    const num = wrong + kinds.filter((k) => k === 'keep').length;
    const start = `${kinds.length} of ${audit.numIssues} issues, drawn at ` +
        'random: who decides them knows how many of all issues are wrong. ';
    if (!num) return start + 'None is decided yet.';
    const [low, high] = interval(wrong, num);
    return start + `Of ${num} decided so far ${wrong} were wrong: a precision ` +
        `of ${percent(wrong / num)} (95 % interval ${percent(low)} to ` +
        `${percent(high)}).`;
  };

  const showProgress = () => {
    const done = items.filter((item) => decisions.has(item.position)).length;
    find('progress').max = Math.max(1, items.length);
    find('progress').value = done;
    find('decided').textContent = `${done} of ${items.length} decided`;
    find('undo').disabled = past.length === 0;
    find('message').textContent = find('by-order').value === 'control' ?
        controlText() : '';
  };

  const show = () => { showStage(); showStrip(); showProgress(); };

  // ---- Order and filters.

  const order = () => {
    const kind = find('by-order').value;
    if (kind === 'control') {
      return items.filter((item) => item.control >= 0)
          .sort((a, b) => a.control - b.control);
    }
    const worst = items.filter((item) => item.worst);
    if (kind === 'worst') return worst;
    const counts = new Map();
    const pair = (item) => `${item.suggested} ${item.given}`;
    worst.forEach((item) =>
      counts.set(pair(item), (counts.get(pair(item)) || 0) + 1));
    return worst.sort((a, b) => counts.get(pair(b)) - counts.get(pair(a)) ||
        (pair(a) < pair(b) ? -1 : pair(a) > pair(b) ? 1 : 0));
  };

  const refresh = () => {
    const filters = {};
    ['given', 'suggested', 'decision'].forEach((key) => {
      filters[key] = find(`by-${key}`).value;
    });
    view = order().filter((item) => {
      const kind = (decisions.get(item.position) || {kind: 'none'}).kind;
      return (filters.given === '' || item.given === Number(filters.given)) &&
          (filters.suggested === '' ||
           item.suggested === Number(filters.suggested)) &&
          (filters.decision === '' || kind === filters.decision);
    });
    current = 0;
    show();
  };

  const move = (steps) => {
    current = Math.max(0, Math.min(view.length - 1, current + steps));
    show();
  };

  // ---- Decisions.

  const keep = () => {
    const entries = [...decisions].map(
        ([position, {kind, label}]) => [position, kind, label]);
    try {
      localStorage.setItem(storageKey, JSON.stringify(entries));
    } catch (error) {
      find('message').textContent = 'This browser keeps nothing: download the ' +
          'decisions before you close the page.';
    }
  };

  const restore = () => {
    let entries = [];
    try {
      entries = JSON.parse(localStorage.getItem(storageKey) || '[]');
    } catch (error) { /* nothing kept, or nothing readable: start anew */ }
    if (!Array.isArray(entries)) return;
    const known = new Set(items.map((item) => item.position));
    entries.filter((entry) => Array.isArray(entry) && known.has(entry[0]) &&
                   Object.hasOwn(signs, entry[1]) &&
                   (entry[2] === null || Object.hasOwn(names, entry[2])))
        .forEach(([position, kind, label]) =>
          decisions.set(position, {kind, label}));
  };

  const decide = (kind, label) => {
    const item = view[current];
    if (!item) return;
    past.push([item.position, decisions.get(item.position)]);
    decisions.set(item.position, {kind, label});
    // On to the next one that is undecided, if there is one.
    const next = view.findIndex(
        (other, i) => i > current && !decisions.has(other.position));
    if (next > 0) current = next;
    show();
    keep();
  };

  const choose = (label) => {
    const item = view[current];
    decide(label === item.given ? 'keep' :
        label === item.suggested ? 'accept' : 'class', label);
  };

  const undo = () => {
    if (!past.length) return;
    const [position, before] = past.pop();
    if (before) decisions.set(position, before);
    else decisions.delete(position);
    const index = view.findIndex((item) => item.position === position);
    if (index >= 0) current = index;
    show();
    keep();
  };

  // ---- The file. Cells that a spreadsheet would execute get an apostrophe.

  const cell = (value) => {
    let content = String(value);
    const number = /^[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?$/i;
    if (/^'*[=+\-@\t\r]/.test(content) && !number.test(content)) {
      content = `'${content}`;
    }
    return /[",\r\n]/.test(content) ?
        `"${content.replaceAll('"', '""')}"` : content;
  };

  const csv = () => {
    const rows = [['id', 'position', 'given', 'suggested', 'decision', 'label']];
    items.filter((item) => decisions.has(item.position)).forEach((item) => {
      const {kind, label} = decisions.get(item.position);
      rows.push([item.id, item.position, names[item.given],
                 names[item.suggested], kind, label === null ? '' : names[label]]);
    });
    return rows.map((row) => `${row.map(cell).join(',')}\n`).join('');
  };

  const download = () => {
    const url = URL.createObjectURL(new Blob([csv()], {type: 'text/csv'}));
    const link = document.createElement('a');
    link.href = url;
    link.download = 'decisions.csv';
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
  };

  // ---- Mouse and keys.

  const actions = {
    keep: () => view[current] && decide('keep', view[current].given),
    accept: () => view[current] && decide('accept', view[current].suggested),
    unsure: () => decide('unsure', null),
    remove: () => decide('remove', null),
    undo, download,
    previous: () => move(-1),
    next: () => move(1),
  };
  Object.entries(actions).forEach(([id, action]) =>
    find(id).addEventListener('click', action));

  const openOther = () => {
    find('other').focus();
    try {
      // An arrow key on a list that is not open would choose at once.
      find('other').showPicker();
    } catch (error) { /* a browser that cannot: the focus has to do */ }
  };

  const keys = {
    k: actions.keep, a: actions.accept, c: actions.unsure, x: actions.remove,
    u: undo, o: openOther, ArrowLeft: actions.previous,
    ArrowRight: actions.next, Delete: actions.remove,
  };
  document.addEventListener('keydown', (event) => {
    const typing = event.target.matches('select, input, textarea');
    if (typing || event.altKey || !find('shortcuts').checked) return;
    if (event.ctrlKey || event.metaKey) {
      if (event.key.toLowerCase() !== 'z') return;
      event.preventDefault();
      undo();
      return;
    }
    const item = view[current];
    const digit = /^[1-9]$/.test(event.key) ? Number(event.key) : 0;
    const action = digit && item && digit <= item.nearest.length ?
        () => choose(item.nearest[digit - 1][0]) :
        keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });

  const option = (select, value, label) => {
    add(select, 'option', '', label).value = String(value);
  };
  option(find('other'), '', 'choose …');
  names.forEach((name, k) => option(find('other'), k, name));
  find('other').addEventListener('change', () => {
    const value = find('other').value;
    if (value === '') return;
    choose(Number(value));
    toStage();
  });
  ['given', 'suggested'].forEach((key) => {
    const select = find(`by-${key}`);
    option(select, '', 'all classes');
    [...new Set(items.map((item) => item[key]))].sort((a, b) => a - b)
        .forEach((k) => option(select, k, names[k]));
  });
  // Who chooses a filter with the mouse goes on with the keys of the stage;
  // who chooses it with the keyboard stays where they are.
  let byKey = false;
  document.addEventListener('mousedown', () => { byKey = false; }, true);
  document.addEventListener('keydown', (event) => {
    byKey = event.target.matches('select');
  }, true);
  const toStage = () => find('stage').focus({preventScroll: true});
  ['order', 'given', 'suggested', 'decision'].forEach((key) =>
    find(`by-${key}`).addEventListener('change', () => {
      refresh();
      if (!byKey) toStage();
    }));

  restore();
  refresh();
  const first = view.findIndex((item) => !decisions.has(item.position));
  if (first > 0) move(first);
})();
