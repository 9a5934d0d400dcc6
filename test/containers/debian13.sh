# Sourced. Packages of Debian 13 beside whatever this machine runs: downloaded by apt into a folder of their own, and unpacked there.

# Where this machine's packages come from: a mirror that can be reached.
mirror() {
  apt-get indextargets --format '$(REPO_URI)' | head -1
}

# unpack_debian13 FOLDER PACKAGE...: the packages and what they need are in FOLDER/root.
unpack_debian13() {
  local folder=$1 apt
  shift
  [ -n "$(mirror)" ] || return 1
  mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/root"
  : >"$folder/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $(mirror) trixie main" >"$folder/sources.list"
  apt=(apt-get -q -o Dir::Etc::SourceList="$folder/sources.list" -o Dir::Etc::SourceParts=/dev/null -o Dir::State::Lists="$folder/lists"
    -o Dir::State::Status="$folder/status" -o Dir::Cache="$folder/cache" -o APT::Sandbox::User=root -o APT::Get::List-Cleanup=false)
  "${apt[@]}" update
  "${apt[@]}" install --yes --download-only --no-install-recommends "$@"
  for package in "$folder"/cache/archives/*.deb; do dpkg-deb --extract "$package" "$folder/root"; done
}
