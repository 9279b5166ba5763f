//! `bench`: every workload that needs something of its own is measured, not passed over.

use crate::program::Folder;

#[test]
fn workloads_are_measured() {
    let folder = Folder::new();
    folder.write("table.txt", "198.18.0.0/15\n10.1.0.0/16\n192.0.2.0/24\n");
    // One with a table of its own, a plain one, and one of several Click files.
    let mut arguments = vec!["bench", "l3-full", "l2", "nat-firewall-balancer", "--json", "--no-testpmd"];
    arguments.extend(["--ports", "memory", "--flows", "100", "--rounds", "1", "--seconds", "0.01"]);
    arguments.extend(["--table", "table.txt"]);
    let run = folder.millrace(&arguments).sound();
    let report: serde_json::Value = serde_json::from_slice(&run.stdout).expect("JSON");
    let rows = report["rows"].as_array().expect("rows");
    let names: Vec<&str> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    // Floor and forwarding have one form, the others three.
    assert_eq!(names.len(), 11, "{names:?}");
    for row in rows {
        assert!(row["skipped"].is_null(), "{row}");
        let sample = &row["samples"][0];
        assert_eq!(sample["sound"], true, "{row}");
        assert!(sample["packets"].as_u64().is_some_and(|packets| packets > 0), "{row}");
        let drops = sample["dropped"].as_array().expect("drops").len();
        assert_eq!(drops > 0, row["name"] == "floor", "{row}");
    }
}
