#!/bin/sh
# Installs Horovod 0.28.1 in the environment of an MPI, for its ranks:
#
#     docs/systems/horovod.sh .venv          # or .mpi/mpich: an environment with mpicxx and torch
#
# Compiles for some minutes, with cmake, make and g++ (apt-get install cmake make g++). The version is
# pinned by constraints.txt, its hash is not; setup.py and the source run as you.
set -eu

checkout=$(cd "$(dirname "$0")/../.." && pwd)
environment=$(cd "${1:?name the environment of an MPI, such as .venv}" && pwd)
PATH=$environment/bin:$PATH # mpicxx of that MPI first
for tool in "$environment/bin/mpicxx" cmake make g++; do
    command -v "$tool" >/dev/null || { echo "horovod.sh: there is no $tool" >&2; exit 1; }
done
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

pip() {
    verb=$1
    shift
    python -P -m pip "$verb" --constraint "$checkout/constraints.txt" --no-build-isolation "$@"
}

change() { # FILE, COMMAND of sed; lines are one text
    cp "$1" unchanged
    sed --in-place --null-data --regexp-extended "$2" "$1"
    ! cmp --silent "$1" unchanged || { echo "horovod.sh: $1 is not as expected" >&2; exit 1; }
}

pip download --no-deps --no-binary horovod horovod
tar --extract --file horovod-*.tar.gz
cd horovod-*/

# PyTorch needs C++17 since 2.1, and Horovod asks for C++14.
for file in CMakeLists.txt horovod/torch/CMakeLists.txt; do
    change $file 's/(CMAKE_CXX_STANDARD) 1[14]\b/\1 17/g'
done
# With settings from the environment, a second init() crashes: what a setting has fixed has no entry in
# this vector any more.
change horovod/common/parameter_manager.cc \
    's/\} else (\{\s+Eigen::VectorXd v = TunableParameter::BestValue\(\);)/} else if (fixed_values_.find(variable) == fixed_values_.end()) \1/'
# With gloo, an init() after a shutdown with MPI crashes: what was shut down counts as enabled still.
for file in mpi/mpi_context.cc gloo/gloo_context.cc; do
    change horovod/common/$file \
        's/(EnvFinalize\(\);\s+\}|reset_ = true;)(\s+\}\s)/\1\n  enabled_ = false;\2/g'
done

export HOROVOD_WITH_MPI=1 HOROVOD_WITH_GLOO=1 HOROVOD_WITH_PYTORCH=1
export HOROVOD_WITHOUT_TENSORFLOW=1 HOROVOD_WITHOUT_MXNET=1
pip install .
