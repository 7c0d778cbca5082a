#!/bin/sh
# enter.sh ROOT DATA USER:GROUP NAME=VALUE... PROGRAM ARGUMENT...: becomes the program of a container, with DATA in
# /data and a /tmp of its own. A user other than root has no capabilities and gets none.
set -eu
root=$1
data=$2
user=${3%:*}
group=${3#*:}
shift 3
mount --bind "$data" "$root/data"
mount -t tmpfs none "$root/tmp"
if [ "$user" = 0 ]; then exec chroot "$root" env -i "$@"; fi
exec chroot "$root" setpriv --reuid "$user" --regid "$group" --clear-groups --no-new-privs --inh-caps=-all \
  --bounding-set=-all env -i "$@"
