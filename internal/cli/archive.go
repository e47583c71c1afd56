package cli

// archived is commit, date and nearest tag of the sources if "git archive" wrote this file, as it does for the tarballs
// of hosting services (.gitattributes: export-subst).
const archived = "$Format:%H %cI %(describe:tags=true)$"
