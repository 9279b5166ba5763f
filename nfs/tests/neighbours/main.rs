//! Next hops that the platform resolves for NFs in processes: between real kernels, and from captures.

#[path = "../../../crates/millrace/tests/e2e/accounts.rs"]
#[allow(dead_code, reason = "these tests need few of them")]
mod accounts;
mod captures;
#[path = "../e2e/frames.rs"]
#[allow(dead_code, reason = "these tests need few of them")]
mod frames;
mod kernels;
#[path = "../../../crates/millrace/tests/e2e/namespaces.rs"]
#[allow(dead_code, reason = "these tests need few of them")]
mod namespaces;
#[path = "../e2e/run.rs"]
#[allow(dead_code, reason = "these tests need few of them")]
mod run;
