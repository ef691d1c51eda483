#!/usr/bin/env bash
# Boots a small machine of its own, with Debian's kernel and cgroup v2, and runs there what most machines cannot show:
# that memory_max, pids_max and cgroup.kill hold (init.sh). Fails when anything failed or did not run to its end.
#   run.sh BUILD_DIRECTORY
# VM_KERNEL: another kernel's image. VM_ACCEL: kvm or tcg. VM_SECONDS: how long it may take, 1200 if not given.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
work=$build/vm
mkdir -p "$work"

# Only unpacked: nothing of the system that boots this machine is touched.
fetch_kernel() (
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: *\(linux-image-.*\)/\1/p' | head -n 1)
  [[ -n $package ]] || { echo "vm: no linux-image-cloud-amd64 in the package lists (apt-get update?)" >&2; exit 1; }
  [[ -e $work/$package ]] && exit 0
  rm -rf "$work"/linux-image-* "$work/unpacked"
  cd "$work"
  apt-get -q download "$package"
  dpkg-deb -x "$package"_*.deb unpacked
  mv unpacked/boot/vmlinuz-* "$package"
  rm -rf unpacked "$package"_*.deb
)

# Everything is where it is here, so that paths that were compiled in are right.
make_root() {
  local root=$work/root
  rm -rf "$root"
  mkdir -p "$root"/{bin,dev,etc,proc,sys,tmp,usr/lib}
  local programs=("$build/fairlead" "$build/tests/test_process" "$build"/fixtures/* "$(command -v setfattr)")
  cp "$(command -v busybox)" "$root/bin/busybox"
  ldd "${programs[@]}" | grep -o '/[^ ]*\.so[^ ]*' | sort -u | xargs cp -L --parents -t "$root"
  cp --parents -t "$root" "${programs[@]}" "$source/docs/errors.md"
  install -m 755 "$here/init.sh" "$root/init"
  printf 'BUILD=%q\n' "$build" >"$root/etc/vm"
  printf '%s\n' 'root:x:0:0::/tmp:/bin/sh' 'user:x:1000:1000::/tmp:/bin/sh' >"$root/etc/passwd"
  find "$root" -type d -exec chmod 755 {} +
  (cd "$root" && find . | cpio --quiet -o -H newc -R 0:0 | gzip -1) >"$work/root.cpio.gz"
}

kernel=${VM_KERNEL:-}
if [[ -z $kernel ]]; then
  fetch_kernel
  kernel=$(echo "$work"/linux-image-*)
fi
make_root
# KVM where processor and rights allow it, else emulation: slower, and the same. A /dev/kvm alone says little.
accel=tcg
if grep -qwE 'vmx|svm' /proc/cpuinfo && [[ -w /dev/kvm ]]; then accel=kvm; fi
timeout "${VM_SECONDS:-1200}" qemu-system-x86_64 -accel "${VM_ACCEL:-$accel}" -cpu max -smp 2 -m 1G -nodefaults -display none \
  -no-reboot -serial stdio -kernel "$kernel" -initrd "$work/root.cpio.gz" \
  -append "console=ttyS0 quiet loglevel=1 panic=-1" </dev/null | sed -u 's/\r//' | tee "$work/console"
grep -qx 'vm: all passed' "$work/console"
