def search(job, structures, max_components, cv, show):
    raise SystemExit
