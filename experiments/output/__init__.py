"""What results become: tables, figures, a page."""
