//! Results of other systems, for comparison.
//!
//! All were measured in November 2026 by one person on one machine: 2 virtual cores of an AMD EPYC (Zen 3),
//! TSC 2.445 GHz, no NIC, 64-byte frames, one core, median of at least 3 runs. Absolute values do not apply
//! to another machine; shares of the floor do.

/// FastClick (2026), in its fastest build for each row, over DPDK's net_pcap with `infinite_rx=1`, which
/// drops sent packets: workload, flows, Mpps. "60 k" and "64 k" flows are listed as 65,536.
///
/// Its floor with 65,536 flows was not measured. The value here is the cost of L2 forwarding with as many
/// flows (77.1 cycles) minus its cost above the floor with 1,000 flows (9.3 cycles).
pub const FASTCLICK: &[(&str, u64, f64)] = &[
    ("floor", 1_000, 42.9),
    ("floor", 65_536, 36.0),
    ("l2", 1_000, 36.9),
    ("l2", 65_536, 31.7),
    ("l3-10", 1_000, 26.8),
    ("l3-10", 65_536, 23.5),
    ("l3-10-spread", 1_000, 26.8),
    ("l3-10-spread", 65_536, 23.5),
    ("firewall-10", 1_000, 24.6),
    ("firewall-10", 65_536, 22.0),
    ("lean-router-1", 1_000, 26.3),
    ("lean-router-2", 1_000, 19.0),
    ("lean-router-4", 1_000, 11.9),
    ("lean-router-10", 1_000, 6.0),
    ("router-1", 1_000, 17.4),
    ("router-2", 1_000, 12.4),
    ("router-4", 1_000, 8.0),
    ("router-10", 1_000, 4.0),
    ("napt-1", 1_000, 8.4),
    ("napt-2", 1_000, 4.5),
    ("napt-4", 1_000, 2.3),
    ("napt-10", 1_000, 0.74),
    ("napt-1", 65_536, 3.3),
    ("napt-2", 65_536, 0.95),
    ("napt-4", 65_536, 0.49),
    ("napt-10", 65_536, 0.165),
    ("nat-firewall-balancer", 1_000, 3.8),
    ("nat-firewall-balancer", 65_536, 1.2),
];

/// BESS in memory, from a few hot buffers: workload, flows, cycles per packet. Its NAT had 60,000 flows.
pub const BESS: &[(&str, u64, f64)] = &[
    ("floor", 1_000, 7.2),
    ("l2", 1_000, 15.7),
    ("l3-10", 1_000, 40.0),
    ("l3-10-spread", 1_000, 52.0),
    ("firewall-10", 1_000, 41.0),
    ("napt-1", 65_536, 109.0),
];

/// FastClick's rate as a share of its floor (receive and drop) with as many flows.
pub fn fastclick_share(workload: &str, flows: u64) -> Option<f64> {
    Some(find(FASTCLICK, workload, flows)? / find(FASTCLICK, "floor", flows)?)
}

/// BESS's cycles per packet.
pub fn bess_cycles(workload: &str, flows: u64) -> Option<f64> {
    find(BESS, workload, flows)
}

fn find(table: &[(&str, u64, f64)], workload: &str, flows: u64) -> Option<f64> {
    table.iter().find(|row| row.0 == workload && row.1 == flows).map(|row| row.2)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speed::workload;

    #[test]
    fn shares_are_of_the_floor() {
        let share = fastclick_share("l2", 1_000).expect("known");
        assert!((share - 36.9 / 42.9).abs() < 1e-12, "{share}");
        assert_eq!(fastclick_share("floor", 1_000), Some(1.0));
        let share = fastclick_share("l2", 65_536).expect("known");
        assert!((share - 31.7 / 36.0).abs() < 1e-12, "{share}");
        assert_eq!(fastclick_share("l2", 7), None);
    }

    #[test]
    fn rows_name_workloads_that_exist_once() {
        for table in [FASTCLICK, BESS] {
            for (at, row) in table.iter().enumerate() {
                assert!(workload::find(row.0).is_some(), "{} is no workload", row.0);
                assert!(table.iter().skip(at + 1).all(|other| (other.0, other.1) != (row.0, row.1)));
            }
        }
    }

    #[test]
    fn every_gated_workload_has_a_figure() {
        for workload in workload::all().filter(|workload| workload.gated) {
            for flows in [1_000, 65_536] {
                assert!(fastclick_share(workload.name, flows).is_some(), "{}", workload.name);
            }
        }
    }
}
