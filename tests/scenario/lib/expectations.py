"""What evidence is compared with, and what the catalogue of findings requires of each slug."""

import json
import re


class ends(str):
    """Evidence that ends so: file names whose directory differs from run to run."""


class has(str):
    """Evidence that contains this: in a text, or anywhere inside a list or an object."""


def matches(found, wanted):
    if isinstance(wanted, list):
        return isinstance(found, list) and len(found) == len(wanted) and all(map(matches, found, wanted))
    if found is None:
        return False
    if isinstance(wanted, ends):
        return str(found).endswith(wanted)
    if isinstance(wanted, has):
        return wanted in (found if isinstance(found, str) else json.dumps(found))
    return found == wanted if isinstance(wanted, (bool, int)) else str(found) == str(wanted)


def same(text):
    """The text without what differs between two runs of one program: addresses, process ids, times in logs."""
    text = re.sub(r"^([IWE])\d{4} [\d:.]+ \d+ (?=\S+:\d+\])", r"\1 ", text, flags=re.MULTILINE)
    text = re.sub(r"^\[\d{4}-\d\d-\d\d [\d:,]+\]", "[TIME]", text, flags=re.MULTILINE)
    text = re.sub(r"(?<= done )\(\d+\.\d+s\)", "(TIME)", text)
    text = re.sub(r"\b0x[0-9a-f]{4,}\b", "ADDRESS", text)
    return re.sub(r"(?<=\bpid[ =])\d+|(?<=/proc/)\d+", "PID", text)


# What every failure of NCCL has.
NCCL = ["result", "last_error", "meaning", "nccl", "nccl_version", "rank"]

# docs/findings.md, "evidence must name".
REQUIRED = {
    "loader-missing-library": ["library", "needed_by", "chain", "searched", "near_misses"],
    "loader-symbol-version": ["symbol", "demangled", "file", "provider_path", "provider_version", "why_chosen"],
    "loader-abi-mismatch": ["symbol", "demangled", "file", "torch"],
    "loader-shadowed-library": ["library", "used", "used_version", "hidden", "hidden_version", "rule"],
    "loader-two-runtimes": ["library", "copies"],
    "loader-libstdcxx-too-old": ["file", "wanted", "in_use", "in_use_best", "why_in_use"],
    "loader-glibc-too-old": ["file", "wanted", "present", "origin"],
    "package-broken": ["path", "what_it_is"],
    "loader-missing-driver": ["library", "searched", "device_nodes", "driver_module", "container"],
    "loader-stub-driver": ["path", "why"],
    "loader-wrong-architecture": ["file", "problem", "what_it_is"],
    "loader-static-tls": ["library", "tls_bytes", "users_in_load_order"],
    "hidden-cause": [],
    "build-missing-header": ["header", "included_by", "searched", "compiler", "source", "cuda_home", "cuda_release",
                             "also_missing", "copies", "packages"],
    "build-missing-compiler": ["program", "asked", "path", "cuda_home", "copies", "state"],
    "build-toolkit-mismatch": ["nvcc", "nvcc_release", "torch", "torch_cuda", "consequence"],
    "build-unsupported-host-compiler": ["nvcc", "nvcc_release", "limit", "host_compiler", "host_release", "others"],
    "build-unsupported-arch": ["architecture", "nvcc", "nvcc_release", "supported", "torch_cuda_arch_list", "flag_from"],
    "build-out-of-memory": ["program", "signal", "source", "limit_bytes", "limit_kind", "peak_bytes", "oom_kill_before",
                            "oom_kill_after", "jobs_at_once", "max_jobs"],
    "build-process-limit": ["limit", "limit_kind", "refused", "jobs_at_once", "max_jobs"],
    "build-stale-lock": ["lock", "age_s", "build_directory", "holders"],
    "build-link-failed": ["library", "searched", "present", "needed_by"],
    "build-nvrtc-failed": ["nvrtc", "nvrtc_release", "include_directories", "variable", "log"],
    "build-stale-cache": ["built_with", "loaded_by", "cache"],
    "build-nothing-built": ["ninja", "argv", "output", "patched_file"],
    "build-incompatible-headers": ["pair", "a", "a_release", "b", "b_release"],
    "package-without-extension": ["package", "version", "module"],
    "build-slow": ["seconds", "cached", "steps"],
    "cuda-no-driver": ["code", "library", "searched", "device_nodes", "driver_module", "container", "runtime", "runtime_cuda"],
    "cuda-driver-too-old": ["code", "driver", "driver_chosen_by", "driver_release", "driver_cuda", "kernel_module", "runtime",
                            "runtime_cuda", "minimum", "forward_compat"],
    "cuda-device-unavailable": ["code", "call", "cuda_visible_devices", "device_nodes", "fabric_manager", "mig_instances",
                                "container", "driver", "driver_release", "kernel_module", "runtime"],
    "container-device-revoked": ["node", "errno", "refused", "uid", "cgroup"],
    "cuda-ptx-jit-slow": ["seconds", "modules", "gpu", "compute_capability", "cache"],
    "nccl-no-interface": ["nccl_socket_ifname", "read_as", "interfaces", "would_do"] + NCCL,
    "nccl-duplicate-gpu": ["ranks", "bus_id", "pci", "gpus", "processes", "processes_here"] + NCCL,
    "nccl-shm-too-small": ["segment", "need_bytes", "size_bytes", "used_bytes", "free_bytes", "segments", "container"] + NCCL,
    "nccl-version-mix": ["nccl", "nccl_version"],
    "nccl-system-error": ["nccl_socket_ifname", "interfaces", "locked_memory_limit", "open_files_limit", "processes_here"] + NCCL,
    "nccl-cuda-error": NCCL,
    "nccl-remote-error": ["processes_here", "interfaces"] + NCCL,
    "nccl-hang": ["collective", "sequence", "numel_in", "numel_out", "waited", "first_difference"] + NCCL,
    "build-wrong-accelerator": ["accelerator", "why", "sources"],
}

KEYS = ["schema", "id", "slug", "severity", "confidence", "title", "time_ns", "host", "rank", "pid", "tid", "argv",
        "evidence", "where", "fixes", "cause_of", "limits"]


def missing_evidence(finding):
    missing = [key for key in KEYS if key not in finding]
    missing += ["evidence." + key for key in REQUIRED.get(finding["slug"], []) if key not in finding["evidence"]]
    missing += [key for key in ("title", "pid", "time_ns", "argv") if not finding.get(key)]
    for fix in finding["fixes"]:
        missing += [f"fixes.{key}" for key in ("text", "command", "proved") if key not in fix]
    for step in finding["evidence"].get("searched", []):
        missing += [f"searched.{key}" for key in ("dir", "why", "result") if key not in step]
    return missing


def describe(data):
    return json.dumps(data, indent=1)
