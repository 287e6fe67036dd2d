"""Reports that people ask for in a browser: jobs from the form to the download, with a page that says how each stands."""
