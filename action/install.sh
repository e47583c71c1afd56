#!/usr/bin/env bash
# Puts tare on the PATH of the steps that follow: a checked release, or a build of the sources beside this script.
set -euo pipefail

die() {
  echo "::error title=tare::$1"
  exit 1
}

to=$RUNNER_TEMP/tare-bin
mkdir -p "$to"
if [ -z "$TARE_VERSION" ]; then
  (cd "$ACTION_PATH/.." && CGO_ENABLED=0 go build -trimpath -o "$to/tare" ./cmd/tare)
else
  [[ $TARE_VERSION =~ ^v[0-9]+\.[0-9]+\.[0-9]+(-[0-9A-Za-z.]+)?$ ]] || die 'version: want one such as v0.2.0'
  [ -n "$TARE_SHA256" ] || die 'sha256: with version, give the SHA-256 of the archive'
  case $(uname -s)-$(uname -m) in
    Linux-x86_64) arch=amd64 ;;
    Linux-aarch64) arch=arm64 ;;
    *) die 'releases are for Linux on amd64 and arm64' ;;
  esac
  name=tare-$TARE_VERSION-linux-$arch
  from=${TARE_RELEASES:-${REPOSITORY:+${GITHUB_SERVER_URL:-https://github.com}/$REPOSITORY/releases/download/$TARE_VERSION}}
  [ -n "$from" ] || die 'this action is a local folder: name the folder of the releases, or build from source'
  cd "$to"
  curl -fsSL --proto '=https' --retry 3 -o "$name.tar.gz" "$from/$name.tar.gz" || die "cannot download $name.tar.gz"
  echo "$TARE_SHA256  $name.tar.gz" | sha256sum --check --status || die "$name.tar.gz does not have the given sha256"
  if [ -n "$TARE_SIGNERS" ]; then echo "$TARE_SIGNERS" >signers; else cp "$ACTION_PATH/signers" signers; fi
  if grep -q '^[^#]' signers; then
    for file in SHA256SUMS SHA256SUMS.sig; do
      curl -fsSL --proto '=https' --retry 3 -o $file "$from/$file" || die "cannot download $file: the release is not signed"
    done
    ssh-keygen -q -Y verify -f signers -I release -n tare-release -s SHA256SUMS.sig <SHA256SUMS ||
      die 'SHA256SUMS is not signed by a signer of releases'
    grep -Fqx "$TARE_SHA256  $name.tar.gz" SHA256SUMS || die "the signed SHA256SUMS do not list $name.tar.gz with the given sha256"
  else
    echo '::notice title=tare::no signer of releases is known: only the given sha256 was compared'
  fi
  tar -xzf "$name.tar.gz" --strip-components=1 "$name/tare"
fi
echo "$to" >>"$GITHUB_PATH"
"$to/tare" version
