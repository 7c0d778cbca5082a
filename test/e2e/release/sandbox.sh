#!/bin/sh
# sandbox.sh DIR HOSTS: run by `unshare --mount --net`. Makes DIR/root, a root directory that containers share: that of
# this machine, with other hosts, with DIR/opt in /opt/remora and DIR/certs in /certs, read-only apart from these. Keeps
# its namespaces until it is ended.
set -eu
dir=$1
root=$dir/root
ip link set lo up
printf '%s\n' "$2" | while read -r address _; do ip address add "$address/8" dev lo 2>/dev/null || true; done
mount --make-rprivate /
mkdir -p "$root" "$dir/layers" "$dir/certs"
mount -t tmpfs none "$dir/layers"
mkdir "$dir/layers/upper" "$dir/layers/work"
mount -t overlay overlay -o "lowerdir=/,upperdir=$dir/layers/upper,workdir=$dir/layers/work" "$root"
mkdir -p "$root/data" "$root/certs" "$root/opt/remora"
printf '%s\n' "$2" >"$root/etc/hosts"
mount --rbind /proc "$root/proc"
mount --rbind /dev "$root/dev"
mount --bind "$dir/opt" "$root/opt/remora"
mount --bind "$dir/certs" "$root/certs"
mount -o remount,ro "$root"
echo ready
exec sleep 600
