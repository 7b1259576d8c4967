#!/bin/sh
# A small root file system of a Debian or Ubuntu suite, as a base image where no registry answers.
# Knows what the image needs of the system; does not know how the image is made of it.
#
#   bootstrap.sh SUITE MIRROR TARGET
set -eu

suite=$1
mirror=$2
target=$3

components=main
include=python3,python3-venv,libmemkind0
case $suite in
    noble) components=main,universe ;;     # Ubuntu keeps memkind and venv in universe
    trixie) include=python3,python3-venv ;; # Debian dropped memkind after bookworm
esac

debootstrap --variant=minbase --components="$components" --include="$include" \
    "$suite" "$target" "$mirror"

# What nobody reads in a container, and what apt would fetch again.
rm -rf "$target"/usr/share/doc/* "$target"/usr/share/info/* "$target"/usr/share/locale/* \
    "$target"/usr/share/man/* "$target"/var/cache/apt/* "$target"/var/cache/debconf/*-old \
    "$target"/var/lib/apt/lists/* "$target"/var/log/*
