//! The HTTP client.

use std::time::Duration;
use ureq::Agent;

/// Without a network one wants to know soon.
const CONNECT: Duration = Duration::from_secs(5);
/// A server that says nothing for so long will not say anything.
const SILENCE: Duration = Duration::from_secs(30);

/// A client that gives up soon on servers that cannot be reached, and hands over files as they are.
pub(crate) fn agent() -> Agent {
    Agent::config_builder()
        .timeout_resolve(Some(CONNECT))
        .timeout_connect(Some(CONNECT))
        .timeout_recv_response(Some(SILENCE))
        .timeout_per_read(Some(SILENCE))
        .http_status_as_error(false)
        .accept_encoding("identity")
        .user_agent(concat!("jarz/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}
