#!/bin/sh
# First process of an emulated host, in namespaces of its own: the kernel ends the host with it.
#   host.sh NAME
set -e
hostname "$1"
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
echo "$1"
# without SIGCHLD the kernel reaps the orphans of which this process becomes the parent
exec env --ignore-signal=CHLD sleep infinity > /dev/null 2>&1
