//! Two network namespaces with a cable between them, for what only a kernel can do to a
//! network: interfaces that go, addresses that change, packet sizes, routes. Needs root and
//! iproute2.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// One end of a cable: a network namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkEnd {
    namespace: String,
    ip: &'static str,
}

/// A cable; dropping it takes both of its ends away.
#[derive(Debug)]
pub struct Cable {
    /// Where a gateway is to listen.
    pub gateway: NetworkEnd,
    /// Where a node is to run.
    pub node: NetworkEnd,
}

/// What the interface is called at both ends.
const INTERFACE: &str = "cable";

impl Cable {
    /// Lays a cable.
    #[track_caller]
    pub fn lay() -> Self {
        static LAID: AtomicU32 = AtomicU32::new(0);
        let number = LAID.fetch_add(1, Ordering::Relaxed);
        let end = |name: &str, ip| NetworkEnd {
            namespace: format!("tidings-{}-{number}-{name}", std::process::id()),
            ip,
        };
        let cable = Self {
            gateway: end("gateway", "10.77.0.1"),
            node: end("node", "10.77.0.2"),
        };
        let ends = [&cable.gateway, &cable.node];
        for end in ends {
            ip(&["netns", "add", &end.namespace]);
        }
        let (here, there) = (&*cable.gateway.namespace, &*cable.node.namespace);
        ip(&[
            "link", "add", INTERFACE, "netns", here, "type", "veth", "peer", "name", INTERFACE,
            "netns", there,
        ]);
        for end in ends {
            end.ip(&["link", "set", "lo", "up"]);
            end.has_address(end.ip);
            end.is_plugged_in();
        }
        cable
    }
}

impl Drop for Cable {
    fn drop(&mut self) {
        for end in [&self.gateway, &self.node] {
            // A cable that was not laid as a whole has less to take away.
            let _ = Command::new("ip")
                .args(["netns", "delete", &end.namespace])
                .output();
        }
    }
}

impl NetworkEnd {
    /// Its first address.
    pub fn address(&self) -> &'static str {
        self.ip
    }

    /// The interface comes up.
    #[track_caller]
    pub fn is_plugged_in(&self) {
        self.ip(&["link", "set", INTERFACE, "up"]);
    }

    /// The interface goes down.
    #[track_caller]
    pub fn is_unplugged(&self) {
        self.ip(&["link", "set", INTERFACE, "down"]);
    }

    /// It gets this address too.
    #[track_caller]
    pub fn has_address(&self, address: &str) {
        let network = format!("{address}/24");
        self.ip(&["address", "add", &network, "dev", INTERFACE]);
    }

    /// This address goes.
    #[track_caller]
    pub fn loses_address(&self, address: &str) {
        let network = format!("{address}/24");
        self.ip(&["address", "delete", &network, "dev", INTERFACE]);
    }

    /// No packet may be longer.
    #[track_caller]
    pub fn has_packets_of(&self, bytes: &str) {
        self.ip(&["link", "set", INTERFACE, "mtu", bytes]);
    }

    /// The kernel refuses to send to this address, or lets it again.
    #[track_caller]
    pub fn prohibits(&self, address: &str) {
        self.ip(&["route", "add", "prohibit", address]);
    }

    /// The kernel lets packets to this address go again.
    #[track_caller]
    pub fn permits(&self, address: &str) {
        self.ip(&["route", "delete", "prohibit", address]);
    }

    /// The arguments of `ip` that run `program` here.
    pub(crate) fn arguments(&self, program: &Path) -> [String; 4] {
        let program = program.to_str().expect("a path in UTF-8");
        ["netns", "exec", &self.namespace, program].map(str::to_owned)
    }

    #[track_caller]
    fn ip(&self, arguments: &[&str]) {
        ip(&[&["-netns", &self.namespace], arguments].concat());
    }
}

#[track_caller]
fn ip(arguments: &[&str]) {
    let output = Command::new("ip").args(arguments).output();
    let output = output.expect("ip of iproute2 starts");
    assert!(
        output.status.success(),
        "ip {}: {}",
        arguments.join(" "),
        String::from_utf8_lossy(&output.stderr)
    );
}
