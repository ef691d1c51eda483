#!/usr/bin/env bash
# Boots a virtual machine with Debian's kernel and cgroup v2, and runs tests there that most machines cannot run: that
# memory_max, pids_max and cgroup.kill take effect (init.sh). Fails if a test fails or does not finish.
#   run.sh BUILD_DIRECTORY
# VM_KERNEL: image of another kernel. VM_ACCEL: kvm or tcg. VM_SECONDS: timeout (default 1200).
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
source=$(cd "$here/../.." && pwd)
build=$(cd "$1" && pwd)
work=$build/vm
mkdir -p "$work"

# Downloads and unpacks the kernel package. Does not install it: the host system is unchanged.
fetch_kernel() (
  package=$(apt-cache depends linux-image-cloud-amd64 | sed -n 's/^ *Depends: *\(linux-image-.*\)/\1/p' | head -n 1)
  [[ -n $package ]] || { echo "vm: the package lists do not contain linux-image-cloud-amd64; run apt-get update" >&2; exit 1; }
  [[ -e $work/$package ]] && exit 0
  rm -rf "$work"/linux-image-* "$work/unpacked"
  cd "$work"
  apt-get -q download "$package"
  dpkg-deb -x "$package"_*.deb unpacked
  mv unpacked/boot/vmlinuz-* "$package"
  rm -rf unpacked "$package"_*.deb
)

# Creates the initramfs. Files have the same paths as on the host, so that compiled-in paths are valid.
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
# Uses KVM if the processor and permissions allow it; otherwise emulation, which is slower but equivalent. The existence of
# /dev/kvm is not sufficient.
accel=tcg
if grep -qwE 'vmx|svm' /proc/cpuinfo && [[ -w /dev/kvm ]]; then accel=kvm; fi
timeout "${VM_SECONDS:-1200}" qemu-system-x86_64 -accel "${VM_ACCEL:-$accel}" -cpu max -smp 2 -m 1G -nodefaults -display none \
  -no-reboot -serial stdio -kernel "$kernel" -initrd "$work/root.cpio.gz" \
  -append "console=ttyS0 quiet loglevel=1 panic=-1" </dev/null | sed -u 's/\r//' | tee "$work/console"
grep -qx 'vm: all passed' "$work/console"
