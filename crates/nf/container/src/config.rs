//! `config.json`: the configuration of a container for its runtime.
//!
//! [`of_program`] is the configuration of a container with a program alone; images and bundles have their own.
//! [`complete`] then adds to each what Millrace needs. A confined container gets the confinement of a confined process:
//! no capabilities and no way to gain any, a user that owns no files, the system calls of an ordinary
//! program, namespaces and limits of its own.

use crate::identity::Ids;
use chain::{Rights, Terms};
use confine::{Applied, Comparison, Condition, Profile, Sockets};
use nf_host::process::{EVEN_SHARE, MEMORY_BYTES, is_for_all};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use std::path::{Component, Path, PathBuf};

/// The most processes and threads of a confined NF: the same as for a confined process.
pub const PROCESSES: i64 = 256;
const OPEN_FILES: u64 = 1024;
/// The version of the specification that all runtimes support.
const VERSION: &str = "1.0.2";
/// The descriptor at which the NF finds its socket.
const SOCKET: &str = "fd:3";
/// Files about the machine that a container sees empty.
const MASKED_PATHS: [&str; 10] = [
    "/proc/acpi",
    "/proc/asound",
    "/proc/kcore",
    "/proc/keys",
    "/proc/latency_stats",
    "/proc/timer_list",
    "/proc/timer_stats",
    "/proc/sched_debug",
    "/sys/firmware",
    "/proc/scsi",
];
/// Files about the machine that a container cannot write.
const READONLY_PATHS: [&str; 5] = ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"];

/// Refuses a value of another type.
type TypeCheck = fn(&Value) -> serde_json::Result<()>;

/// Fields of a bundle's `config.json` that are read or replaced here, with their types.
const REPLACED: [(&str, TypeCheck); 9] = [
    ("/process", is::<Map<String, Value>>),
    ("/process/user", is::<Map<String, Value>>),
    ("/root", is::<Map<String, Value>>),
    ("/root/path", is::<String>),
    ("/mounts", is::<Vec<Mount>>),
    ("/linux", is::<Map<String, Value>>),
    ("/linux/namespaces", is::<Vec<Map<String, Value>>>),
    ("/linux/resources", is::<Map<String, Value>>),
    ("/linux/resources/cpu", is::<Map<String, Value>>),
];

/// All that a confined container keeps of its `config.json` besides mounts, with the types. Not kept are,
/// among others, annotations, because crun takes filters, groups and handlers from them; scheduling and
/// caches, which are shares of the machine; network devices; fields that no version of the specification had
/// when this was written, and those that only one of the runtimes takes for a known one, because it ignores
/// case.
const KEPT: [(&str, TypeCheck); 15] = [
    ("/ociVersion", is::<String>),
    ("/hostname", is::<String>),
    ("/domainname", is::<String>),
    ("/hooks", is::<Map<String, Value>>),
    ("/root/readonly", is::<bool>),
    ("/process/args", is::<Vec<String>>),
    ("/process/env", is::<Vec<String>>),
    ("/process/cwd", is::<String>),
    ("/process/user/uid", is::<u32>),
    ("/process/user/umask", is::<u32>),
    ("/process/apparmorProfile", is::<String>),
    ("/process/selinuxLabel", is::<String>),
    ("/linux/mountLabel", is::<String>),
    ("/linux/personality", is::<Map<String, Value>>),
    ("/linux/memoryPolicy", is::<Map<String, Value>>),
];

/// A mount of a container.
#[derive(Serialize, Deserialize)]
pub struct Mount {
    /// The path inside.
    pub destination: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    options: Option<Vec<String>>,
}

fn is<T: DeserializeOwned>(value: &Value) -> serde_json::Result<()> {
    T::deserialize(value).map(drop)
}

/// Checks the types of all fields that are read here or kept.
///
/// # Errors
///
/// The field that has another type.
pub fn check_types(config: &Value) -> Result<(), String> {
    for (path, check) in REPLACED.iter().chain(&KEPT) {
        let value = config.pointer(path).filter(|value| !value.is_null());
        let field = path[1..].replace('/', ".");
        value.map_or(Ok(()), check).map_err(|error| format!("`{field}`: {error}"))?;
    }
    Ok(())
}

/// A field whose type was checked; if it does not exist, the default.
pub fn read<T: DeserializeOwned + Default>(config: &Value, path: &str) -> T {
    config.pointer(path).and_then(|value| T::deserialize(value).ok()).unwrap_or_default()
}

/// Puts the fields of a patch in the place of those of an object, and removes those that are null (RFC 7396).
pub fn merge(target: &mut Value, patch: Value) {
    let Value::Object(fields) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = json!({});
    }
    for (name, value) in fields {
        if !value.is_null() {
            merge(&mut target[name], value);
        } else if let Some(target) = target.as_object_mut() {
            target.remove(&name);
        }
    }
}

/// A container that runs a program as that user, with only `/proc` and `/dev`.
pub fn of_program(arguments: Vec<String>, user: u32) -> Value {
    let environment = std::env::vars().filter(|(name, _)| is_for_all(name.as_ref()));
    let environment: Vec<String> = environment.map(|(name, value)| format!("{name}={value}")).collect();
    // For a container with `confine = false`: the confinement takes them away.
    let capabilities = ["CAP_AUDIT_WRITE", "CAP_KILL", "CAP_NET_BIND_SERVICE"];
    json!({
        "ociVersion": VERSION,
        "hostname": "nf",
        "root": { "readonly": true },
        "process": {
            "args": arguments,
            "env": environment,
            "cwd": "/",
            "user": { "uid": user, "gid": user },
            "capabilities": {
                "bounding": capabilities,
                "effective": capabilities,
                "inheritable": capabilities,
                "permitted": capabilities,
                "ambient": capabilities,
            },
            "noNewPrivileges": true,
            "rlimits": [{ "type": "RLIMIT_NOFILE", "hard": OPEN_FILES, "soft": OPEN_FILES }],
        },
        "mounts": mounts(),
    })
}

/// File systems of the kernel that programs need.
pub fn mounts() -> Vec<Value> {
    let devices = ["nosuid", "noexec", "strictatime", "mode=755", "size=64k"];
    vec![mount("proc", "/proc", &["nosuid", "noexec", "nodev"]), mount("tmpfs", "/dev", &devices)]
}

/// A mount of a file system that has no source.
pub fn mount(kind: &str, place: &str, options: &[&str]) -> Value {
    json!({ "destination": place, "type": kind, "source": kind, "options": options })
}

/// A new namespace of a container.
fn namespace(kind: &str) -> Value {
    json!({ "type": kind })
}

/// Adds to a configuration what Millrace needs, and the confinement.
///
/// `is_check`: whether its NF is only asked whether it would run. `root` and `control_group`: the paths of its root
/// file system, and of its control group in each hierarchy.
pub fn complete(
    config: &mut Value,
    terms: &Terms,
    ids: Ids,
    is_check: bool,
    root: &Path,
    control_group: &Path,
) {
    if let Some(rights) = &terms.rights {
        *config = confined(config, rights, ids);
    } else if config["linux"].is_null() {
        let kinds = ["network", "ipc", "uts", "mount", "cgroup"].map(namespace);
        config["linux"] = json!({
            "namespaces": kinds,
            "resources": { "devices": [] },
            "maskedPaths": MASKED_PATHS,
            "readonlyPaths": READONLY_PATHS,
        });
    }
    let mut environment: Vec<String> = read(config, "/process/env");
    let own = [nf::ENVIRONMENT, nf::CHECK_ENVIRONMENT];
    environment.retain(|entry| !entry.split('=').next().is_some_and(|name| own.contains(&name)));
    environment.push(format!("{}={SOCKET}", nf::ENVIRONMENT));
    if is_check {
        environment.push(format!("{}=1", nf::CHECK_ENVIRONMENT));
    }
    // The end of the first process must end the container; in a PID namespace shared with others it would
    // not.
    let mut namespaces: Vec<Value> = read(config, "/linux/namespaces");
    namespaces.retain(|namespace| namespace["type"] != "pid");
    namespaces.push(namespace("pid"));
    let own = json!({
        "process": { "terminal": null, "consoleSize": null, "env": environment },
        "root": { "path": root },
        "linux": { "cgroupsPath": control_group, "namespaces": namespaces },
    });
    merge(config, own);
    if !terms.cores.is_empty() {
        let cores: Vec<String> = terms.cores.iter().map(ToString::to_string).collect();
        merge(config, json!({ "linux": { "resources": { "cpu": { "cpus": cores.join(",") } } } }));
    }
}

/// What a confined container keeps of a configuration, with the confinement.
fn confined(config: &Value, rights: &Rights, ids: Ids) -> Value {
    let mut confined = json!({});
    for (path, _) in KEPT {
        if let Some(value) = config.pointer(path) {
            let names = path[1..].rsplit('/');
            merge(&mut confined, names.fold(value.clone(), |value, name| json!({ name: value })));
        }
    }
    let user = read(config, "/process/user/uid");
    let mappings: Vec<Value> = ids
        .mapped(user)
        .into_iter()
        .map(|(inside, outside)| json!({ "containerID": inside, "hostID": outside, "size": 1 }))
        .collect();
    let limits = limits().map(|(name, most)| {
        json!({ "type": format!("RLIMIT_{}", name.to_uppercase()), "hard": most, "soft": most })
    });
    let mut namespaces = vec!["mount", "ipc", "uts", "user"];
    if std::fs::exists("/proc/self/ns/cgroup").unwrap_or(false) {
        namespaces.push("cgroup");
    }
    if !rights.network {
        namespaces.push("network");
    }
    let namespaces: Vec<Value> = namespaces.into_iter().map(namespace).collect();
    let sockets = if rights.network { Sockets::Network } else { Sockets::Inherited };
    let confinement = json!({
        "process": {
            "user": { "uid": user, "gid": user },
            "capabilities": {},
            "noNewPrivileges": true,
            "rlimits": limits,
        },
        "mounts": confined_mounts(config, rights),
        "linux": {
            "namespaces": namespaces,
            "uidMappings": mappings,
            "gidMappings": mappings,
            "seccomp": seccomp(sockets),
            "resources": resources(rights),
            "maskedPaths": MASKED_PATHS,
            "readonlyPaths": READONLY_PATHS,
        },
    });
    merge(&mut confined, confinement);
    confined
}

/// The mounts of a configuration, changed so that they are possible in a user namespace, and without other
/// user ids than those of the confinement.
fn confined_mounts(config: &Value, rights: &Rights) -> Vec<Mount> {
    let mut mounts: Vec<Mount> = read(config, "/mounts");
    // The kernel mounts /sys only for the owner of the network namespace; an NF needs no control groups.
    // Runtimes know those by the source or the place, too, and give them to the container's user.
    let is_cgroup = |word: &Option<String>| matches!(word.as_deref(), Some("cgroup" | "cgroup2"));
    mounts.retain(|mount| {
        let mut place = PathBuf::new();
        for part in Path::new(&mount.destination).components() {
            match part {
                Component::Normal(name) => place.push(name),
                Component::ParentDir => drop(place.pop()),
                _ => {}
            }
        }
        !is_cgroup(&mount.kind)
            && !is_cgroup(&mount.source)
            && !place.starts_with("sys/fs/cgroup")
            && (mount.kind.as_deref() != Some("sysfs") || !rights.network)
    });
    for mount in &mut mounts {
        // Mappings of the files' users. Runtimes take `bind` among the options for the type, whatever the
        // type is.
        let ids = ["idmap", "ridmap"].iter();
        // Groups and users that do not exist inside.
        let ids =
            ids.chain(if mount.kind.as_deref() == Some("devpts") { &["gid=", "uid="][..] } else { &[] });
        let options = mount.options.iter_mut();
        options.for_each(|all| all.retain(|option| !ids.clone().any(|id| option.starts_with(id))));
    }
    mounts
}

/// The system calls of an NF with those sockets.
pub fn seccomp(sockets: Sockets) -> Value {
    const ALLOW: &str = "SCMP_ACT_ALLOW";
    const REFUSE: &str = "SCMP_ACT_ERRNO";
    let Profile { allowed, unknown } = Profile::new(sockets);
    let (plain, by_arguments): (Vec<_>, Vec<_>) =
        allowed.into_iter().partition(|rule| rule.conditions.is_empty());
    let names: Vec<&str> = plain.iter().map(|rule| rule.name).collect();
    let mut calls = vec![json!({ "names": names, "action": ALLOW })];
    for rule in by_arguments {
        let conditions: Vec<Value> = rule.conditions.iter().map(condition).collect();
        calls.push(json!({ "names": [rule.name], "action": ALLOW, "args": conditions }));
    }
    calls.push(json!({ "names": unknown, "action": REFUSE, "errnoRet": libc::ENOSYS }));
    json!({ "defaultAction": REFUSE, "syscalls": calls })
}

fn condition(Condition { argument, comparison, value }: &Condition) -> Value {
    let op = match comparison {
        Comparison::Equal => "SCMP_CMP_EQ",
        Comparison::NotEqual => "SCMP_CMP_NE",
        Comparison::Less => "SCMP_CMP_LT",
        Comparison::Masked(mask) => {
            return json!({ "index": argument, "op": "SCMP_CMP_MASKED_EQ", "value": mask, "valueTwo": value });
        }
    };
    json!({ "index": argument, "op": op, "value": value })
}

fn resources(rights: &Rights) -> Value {
    let bytes = i64::try_from(rights.memory_bytes.unwrap_or(MEMORY_BYTES)).unwrap_or(i64::MAX);
    let mut resources = json!({
        "memory": { "limit": bytes },
        "pids": { "limit": PROCESSES },
        "devices": [{ "allow": false, "access": "rwm" }],
    });
    if swap_is_limited() {
        // The limit is for memory and swap together.
        resources["memory"]["swap"] = bytes.into();
    }
    let weight = rights.cpu_share.unwrap_or(EVEN_SHARE);
    if confine::control_group_trees().iter().any(|tree| tree == Path::new("/sys/fs/cgroup")) {
        // Set directly for version 2: a runtime would convert shares into another weight.
        resources["unified"] = json!({ "cpu.weight": weight.to_string() });
    } else {
        resources["cpu"] = json!({ "shares": confine::cpu_shares(weight) });
    }
    resources
}

/// Limits of each process by their names, none higher than those of this one.
pub fn limits() -> [(&'static str, u64); 3] {
    use rustix::process::{Resource, getrlimit};
    let most = |resource, most: u64| getrlimit(resource).maximum.map_or(most, |had| had.min(most));
    let processes = u64::try_from(PROCESSES).unwrap_or(u64::MAX);
    [
        ("nofile", most(Resource::Nofile, OPEN_FILES)),
        ("nproc", most(Resource::Nproc, processes)),
        ("core", most(Resource::Core, 0)),
    ]
}

/// Whether swap can be limited, and swap exists.
fn swap_is_limited() -> bool {
    let swaps = std::fs::read_to_string("/proc/swaps").is_ok_and(|text| text.lines().count() > 1);
    let old = "/sys/fs/cgroup/memory/memory.memsw.limit_in_bytes";
    swaps
        && (std::fs::exists(old).unwrap_or(false)
            || std::fs::exists("/sys/fs/cgroup/cgroup.controllers").unwrap_or(false))
}

/// Sentences about the enforced isolation of a container.
pub fn isolation(terms: &Terms, ids: Ids, runtime: &str, enclosure: &Applied) -> Vec<String> {
    let mut lines = vec![format!("container: by {runtime}")];
    lines.extend(enclosure.measures().iter().map(ToString::to_string));
    if let Some(rights) = &terms.rights {
        lines.push(format!("user id: user {} in a user namespace of its own, no other group", ids.user));
        lines.extend(said_of(rights));
    } else {
        let not = "what its config.json says is all there is: the chain file says `confine = false`";
        lines.push(not.into());
    }
    lines
}

/// Sentences about the enforced isolation of a container with those rights, for any runtime.
pub fn said_of(rights: &Rights) -> Vec<String> {
    let mebibytes = rights.memory_bytes.unwrap_or(MEMORY_BYTES) >> 20;
    let network = if rights.network { "the machine's, as granted" } else { "of its own, with nothing in it" };
    vec![
        "privileges: no capabilities, and none by executing a program".into(),
        "system calls: those of an ordinary program, others are refused".into(),
        "files: a root file system of its own, and what is granted".into(),
        format!("network: {network}"),
        "signals: it sees no process but its own".into(),
        format!("memory: at most {mebibytes} MiB"),
        format!("processes: at most {PROCESSES}, threads included"),
        format!("CPU share: weight {}, where others have 100", rights.cpu_share.unwrap_or(EVEN_SHARE)),
        format!("limits: at most {OPEN_FILES} descriptors, no core dumps, no devices"),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(rights: Option<Rights>, cores: &[usize]) -> Terms {
        Terms { rights, cores: cores.to_vec(), ..Terms::default() }
    }

    fn completed(mut config: Value, terms: &Terms) -> Value {
        complete(&mut config, terms, Ids::new(1_000_000_007), false, Path::new("/root"), Path::new("/group"));
        config
    }

    /// A bundle that asks for everything that a runtime can give.
    fn greedy() -> Value {
        json!({
            "ociVersion": "1.2.0",
            "hostname": "host",
            "domainname": "domain",
            "hooks": { "prestart": [{ "path": "/bin/hook" }] },
            "annotations": { "run.oci.seccomp_bpf_data": "/all", "run.oci.keep_original_groups": "1" },
            "root": { "path": "rootfs", "readonly": false, "unknown": 1 },
            "process": {
                "args": ["/nf"],
                "env": ["A=b", "MILLRACE_NF=/elsewhere"],
                "cwd": "/work",
                "terminal": true,
                "consoleSize": { "height": 1, "width": 1 },
                "user": { "uid": 5, "gid": 0, "umask": 63, "additionalGids": [0], "unknown": 1 },
                "capabilities": { "bounding": ["CAP_SYS_ADMIN"], "effective": ["CAP_SYS_ADMIN"] },
                "noNewPrivileges": false,
                "rlimits": [{ "type": "RLIMIT_NPROC", "hard": 1_000_000, "soft": 1_000_000 }],
                "oomScoreAdj": -1000,
                "apparmorProfile": "profile",
                "selinuxLabel": "label",
                "ioPriority": { "class": "IOPRIO_CLASS_RT", "priority": 0 },
                "scheduler": { "policy": "SCHED_FIFO", "priority": 99 },
                "execCPUAffinity": { "initial": "0" },
                "Capabilities": { "effective": ["CAP_SYS_ADMIN"] },
                "unknown": 1,
            },
            "mounts": [
                { "destination": "/proc", "type": "proc", "source": "proc", "unknown": 1 },
                { "destination": "/sys", "type": "sysfs", "source": "sysfs" },
                { "destination": "/sys/fs/cgroup", "type": "cgroup", "source": "cgroup" },
                { "destination": "sys/x/..//fs/cgroup/x", "type": "tmpfs", "source": "tmpfs" },
                { "destination": "/groups", "type": "tmpfs", "source": "cgroup" },
                { "destination": "/dev/pts", "type": "devpts", "options": ["nosuid", "gid=5", "uid=0"] },
                { "destination": "/host", "type": "devpts", "source": "/", "options": ["rbind", "idmap", "ridmap=x"] },
                {
                    "destination": "/data",
                    "type": "bind",
                    "source": "/data",
                    "options": ["rbind", "idmap=uids=0-0-1", "ridmap"],
                    "uidMappings": [{ "containerID": 0, "hostID": 0, "size": 1 }],
                    "gidMappings": [{ "containerID": 0, "hostID": 0, "size": 1 }],
                },
            ],
            "linux": {
                "namespaces": [{ "type": "pid", "path": "/proc/1/ns/pid" }, { "type": "mount" }],
                "uidMappings": [{ "containerID": 0, "hostID": 0, "size": 65536 }],
                "gidMappings": [{ "containerID": 0, "hostID": 0, "size": 65536 }],
                "cgroupsPath": "/",
                "devices": [{ "path": "/dev/mem", "type": "c", "major": 1, "minor": 1 }],
                "sysctl": { "kernel.domainname": "x" },
                "rootfsPropagation": "shared",
                "seccomp": { "defaultAction": "SCMP_ACT_ALLOW" },
                "resources": { "devices": [{ "allow": true, "access": "rwm" }], "cpu": { "cpus": "0", "mems": "0" } },
                "maskedPaths": [],
                "readonlyPaths": [],
                "mountLabel": "label",
                "intelRdt": { "closID": "all" },
                "memoryPolicy": { "mode": "MPOL_BIND", "nodes": "0" },
                "netDevices": { "eth0": {} },
                "personality": { "domain": "LINUX32" },
                "timeOffsets": { "monotonic": { "secs": 1 } },
                "unknown": 1,
            },
            "Linux": { "namespaces": [] },
            "unknown": 1,
        })
    }

    fn keys(value: &Value) -> Vec<&str> {
        value.as_object().expect("an object").keys().map(String::as_str).collect()
    }

    #[test]
    fn a_confined_container_keeps_what_is_on_the_list_and_nothing_else() {
        let config = completed(greedy(), &terms(Some(Rights::default()), &[]));
        let top = ["domainname", "hooks", "hostname", "linux", "mounts", "ociVersion", "process", "root"];
        assert_eq!(keys(&config), top);
        assert_eq!(config["root"], json!({ "path": "/root", "readonly": false }));
        let process = &config["process"];
        let limits = process["rlimits"].as_array().expect("limits");
        assert!(limits.iter().any(|limit| limit["type"] == "RLIMIT_NPROC" && limit["hard"] == PROCESSES));
        assert_eq!(
            *process,
            json!({
                "args": ["/nf"],
                "env": ["A=b", "MILLRACE_NF=fd:3"],
                "cwd": "/work",
                "user": { "uid": 5, "gid": 5, "umask": 63 },
                "capabilities": {},
                "noNewPrivileges": true,
                "rlimits": limits,
                "apparmorProfile": "profile",
                "selinuxLabel": "label",
            })
        );
        let mounts = [
            json!({ "destination": "/proc", "type": "proc", "source": "proc" }),
            json!({ "destination": "/sys", "type": "sysfs", "source": "sysfs" }),
            json!({ "destination": "/dev/pts", "type": "devpts", "options": ["nosuid"] }),
            json!({ "destination": "/host", "type": "devpts", "source": "/", "options": ["rbind"] }),
            json!({ "destination": "/data", "type": "bind", "source": "/data", "options": ["rbind"] }),
        ];
        assert_eq!(config["mounts"], json!(mounts));
        let linux = &config["linux"];
        let kept =
            ["maskedPaths", "memoryPolicy", "mountLabel", "namespaces", "personality", "readonlyPaths"];
        let own = ["cgroupsPath", "gidMappings", "resources", "seccomp", "uidMappings"];
        let mut all = [&kept[..], &own].concat();
        all.sort_unstable();
        assert_eq!(keys(linux), all);
        let namespaces = linux["namespaces"].as_array().expect("a list");
        assert!(namespaces.iter().all(|one| keys(one) == ["type"]));
        for kind in ["mount", "ipc", "uts", "user", "network", "pid"] {
            assert_eq!(namespaces.iter().filter(|one| one["type"] == kind).count(), 1, "{kind}");
        }
        let ids = json!([
            { "containerID": 0, "hostID": 2_000_000_007, "size": 1 },
            { "containerID": 5, "hostID": 1_000_000_007, "size": 1 },
        ]);
        assert_eq!((&linux["uidMappings"], &linux["gidMappings"]), (&ids, &ids));
        assert_eq!(linux["cgroupsPath"], "/group");
        assert_eq!(linux["resources"]["devices"], json!([{ "allow": false, "access": "rwm" }]));
        assert_eq!(linux["resources"]["memory"]["limit"], MEMORY_BYTES);
        assert_eq!(linux["resources"].pointer("/cpu/cpus"), None);
        assert_eq!(linux["seccomp"], seccomp(Sockets::Inherited));
        assert!(linux["maskedPaths"][0] == "/proc/acpi" && linux["readonlyPaths"][0] == "/proc/bus");
    }

    #[test]
    fn what_is_not_confined_stays_but_for_the_pid_namespace() {
        let config = completed(greedy(), &terms(None, &[1, 3]));
        let mut expected = greedy();
        expected["root"]["path"] = "/root".into();
        expected["linux"]["cgroupsPath"] = "/group".into();
        expected["linux"]["namespaces"] = json!([{ "type": "mount" }, { "type": "pid" }]);
        expected["linux"]["resources"]["cpu"]["cpus"] = "1,3".into();
        expected["process"]["env"] = json!(["A=b", "MILLRACE_NF=fd:3"]);
        merge(&mut expected, json!({ "process": { "terminal": null, "consoleSize": null } }));
        assert_eq!(config, expected);
        // Without `linux`, it has the namespaces of an ordinary container.
        let config = completed(json!({ "process": { "args": ["/nf"] } }), &terms(None, &[]));
        assert_eq!(config["linux"]["namespaces"].as_array().map(Vec::len), Some(6));
    }

    #[test]
    fn only_a_check_says_that_it_is_one() {
        for (is_check, expected) in [
            (false, vec!["A=b", "MILLRACE_NF=fd:3"]),
            (true, vec!["A=b", "MILLRACE_NF=fd:3", "MILLRACE_NF_CHECK=1"]),
        ] {
            let mut config = greedy();
            config["process"]["env"] = json!(["MILLRACE_NF_CHECK=1", "A=b", "MILLRACE_NF=/elsewhere"]);
            let (terms, ids) = (terms(Some(Rights::default()), &[]), Ids::new(1_000_000_007));
            complete(&mut config, &terms, ids, is_check, Path::new("/root"), Path::new("/group"));
            assert_eq!(config["process"]["env"], json!(expected));
        }
    }

    #[test]
    fn a_field_of_another_type_is_named() {
        assert_eq!(check_types(&greedy()), Ok(()));
        assert_eq!(check_types(&json!({ "hooks": null, "process": { "user": { "umask": null } } })), Ok(()));
        for (path, _) in REPLACED.iter().chain(&KEPT) {
            let names = path[1..].rsplit('/');
            let config = names.fold(json!([[{}], -1]), |value, name| json!({ name: value }));
            let told = check_types(&config).expect_err(path);
            assert!(told.starts_with(&format!("`{}`: invalid type", path[1..].replace('/', "."))), "{told}");
        }
        let user = json!({ "process": { "user": { "uid": 4_294_967_296_u64 } } });
        assert!(check_types(&user).is_err_and(|told| told.starts_with("`process.user.uid`: ")));
        let mount = json!({ "mounts": [{ "type": "proc" }] });
        assert_eq!(check_types(&mount), Err("`mounts`: missing field `destination`".into()));
    }

    #[test]
    fn system_calls_are_compared_by_their_arguments() {
        let profile = seccomp(Sockets::Inherited);
        let calls = profile["syscalls"].as_array().expect("a list");
        assert!(profile["defaultAction"] == "SCMP_ACT_ERRNO" && calls[0].get("args").is_none());
        let clone = calls.iter().find(|call| call["names"] == json!(["clone"])).expect("clone");
        let argument = &clone["args"][0];
        assert_eq!((&argument["index"], &argument["op"]), (&json!(0), &json!("SCMP_CMP_MASKED_EQ")));
        assert!(argument["value"].as_u64().is_some_and(|mask| mask > 0) && argument["valueTwo"] == 0);
        let own = calls.iter().find(|call| call["names"] == json!(["setpriority"])).expect("setpriority");
        assert_eq!(own["args"][0], json!({ "index": 0, "op": "SCMP_CMP_LT", "value": 2 }));
        let unknown = json!({ "names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": libc::ENOSYS });
        assert_eq!(calls.last(), Some(&unknown));
    }
}
