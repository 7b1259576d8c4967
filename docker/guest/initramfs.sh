#!/bin/sh
# Makes the initramfs that finds the root disk: busybox, the modules of a virtio disk, its init.
#
#   initramfs.sh FILE
set -eu

file=$1
kernel=$(ls /lib/modules)
tree=$(mktemp -d)
mkdir -p "$tree/bin" "$tree/dev" "$tree/proc" "$tree/root"
cp /bin/busybox "$tree/bin/busybox"
cp "$(dirname "$0")/initramfs-init" "$tree/init"
chmod 755 "$tree/init"
# in the order in which they need each other
modprobe --set-version "$kernel" --all --show-depends virtio_pci virtio_blk ext4 |
    sed -n 's/^insmod //p' | awk '!seen[$1]++ {print $1}' > "$tree/modules"
while read -r module; do
    mkdir -p "$tree$(dirname "$module")"
    cp "$module" "$tree$module"
done < "$tree/modules"
(cd "$tree" && find . | busybox cpio -o -H newc) | gzip > "$file"
rm -rf "$tree"
