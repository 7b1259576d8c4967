#!/bin/sh
# First process of a set of emulated hosts, in namespaces of its own: the kernel ends all hosts with
# it. It ends with its standard input, unless it reads a line there.
#   switch.sh SET ADDRESSES HOST...    ADDRESSES: the text of /etc/hosts
set -e
folder=$(dirname "$0") set=$1 addresses=$2
shift 2
hostname ctl
mount -t tmpfs tmpfs /dev/shm
printf '%s' "$addresses" > /dev/shm/hosts
mount --bind /dev/shm/hosts /etc/hosts # containers bind it again, so the file keeps its name
mount -t tmpfs -o mode=1777 tmpfs /dev/shm # and is out of sight
for host; do
    HBMCOMM_HOST=$set/$host unshare --fork --kill-child --mount-proc \
        --net --uts --ipc --mount --pid sh "$folder/host.sh" "$host" &
done
grep -q . > /dev/null 2>&1 && sleep infinity # a shell that waits reaps orphans, too
