//! Sends requests to a daemon.

use crate::api::{
    Act, Answer, ChainStatus, ExecutionMode, FORMAT, Log, NfStatus, Order, Stats, Status, Value,
};
use crate::platform::Refusal;
use crate::runtime_dir::RuntimeDir;
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::{Method, Request};
use hyper_util::rt::TokioIo;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// Why there is no response.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No daemon listens on the socket.
    #[error(
        "no daemon answers at {at}: {why}; start one with `millrace daemon`, or say where it is with `--at` or \
         MILLRACE_AT"
    )]
    NoDaemon {
        /// The socket.
        at: PathBuf,
        /// The system's error.
        why: String,
    },
    /// The socket may not be opened by the client's user.
    #[error(
        "you may not ask the daemon at {0}: it listens to its own user and to root, and with `--group` lets a group see"
    )]
    NoRight(PathBuf),
    /// The daemon closed the connection: it does so if the client's user is neither its own nor root.
    #[error("the daemon at {0} hung up: it listens to its own user and to root only")]
    HungUp(PathBuf),
    /// The daemon refused the request.
    #[error("{}", .0.text())]
    Refused(Refusal),
    /// The daemon's program has another version.
    #[error(
        "the daemon answers in format {0} and this program reads format {FORMAT}: use the `millrace` that the daemon runs, \
         or start the daemon again"
    )]
    OtherFormat(u32),
    /// The response is not valid.
    #[error("the daemon's answer cannot be read: {0}; is it of another version?")]
    BadAnswer(String),
}

/// A client of a daemon.
#[derive(Debug)]
pub struct Client {
    socket: PathBuf,
    runtime: tokio::runtime::Runtime,
}

impl Client {
    /// A client of the daemon whose sockets are in a folder.
    ///
    /// # Errors
    ///
    /// When the system has no file descriptors left.
    pub fn new(place: &RuntimeDir) -> std::io::Result<Client> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Client { socket: place.control(), runtime })
    }

    /// Returns the status of the daemon and its chain.
    ///
    /// # Errors
    ///
    /// When the daemon refuses it or there is no response.
    pub fn status(&self) -> Result<Status, ClientError> {
        self.get("/v1/status")
    }

    /// Returns the counters of the chain.
    ///
    /// # Errors
    ///
    /// When the daemon refuses it or there is no response.
    pub fn stats(&self) -> Result<Stats, ClientError> {
        self.get("/v1/stats")
    }

    /// Returns the counters in the text format of Prometheus.
    ///
    /// # Errors
    ///
    /// When the daemon refuses it or there is no response.
    pub fn metrics(&self) -> Result<String, ClientError> {
        let bytes = self.call(Method::GET, "/metrics", None::<&()>)?;
        String::from_utf8(bytes.to_vec()).map_err(|error| ClientError::BadAnswer(error.to_string()))
    }

    /// Returns the NFs in processes of their own.
    ///
    /// # Errors
    ///
    /// When the daemon refuses it or there is no response.
    pub fn nfs(&self) -> Result<Vec<NfStatus>, ClientError> {
        self.get("/v1/nfs")
    }

    /// Starts, stops or restarts an NF.
    ///
    /// # Errors
    ///
    /// When the daemon refuses it or there is no response.
    pub fn act(&self, nf: &str, act: Act) -> Result<Vec<NfStatus>, ClientError> {
        let path = format!("/v1/nfs/{}/{act}", escaped(nf));
        read(&self.call(Method::POST, &path, None::<&()>)?)
    }

    /// Returns an NF's log from a line on.
    ///
    /// # Errors
    ///
    /// When the daemon refuses it or there is no response.
    pub fn log(&self, nf: &str, from: u64) -> Result<Log, ClientError> {
        self.get(&format!("/v1/nfs/{}/log/{from}", escaped(nf)))
    }

    /// Runs a chain; with `swap`, it replaces the running one.
    ///
    /// # Errors
    ///
    /// When the daemon refuses it or there is no response.
    pub fn load(&self, order: &Order, swap: bool) -> Result<ChainStatus, ClientError> {
        let method = if swap { Method::PUT } else { Method::POST };
        read(&self.call(method, "/v1/chain", Some(order))?)
    }

    /// Ends the chain and returns its final counters.
    ///
    /// # Errors
    ///
    /// When the daemon refuses it or there is no response.
    pub fn unload(&self) -> Result<Stats, ClientError> {
        read(&self.call(Method::DELETE, "/v1/chain", None::<&()>)?)
    }

    /// Changes the chain's execution mode and returns its new status.
    ///
    /// # Errors
    ///
    /// When the daemon refuses it or there is no response.
    pub fn set_mode(&self, mode: ExecutionMode) -> Result<ChainStatus, ClientError> {
        read(&self.call(Method::PUT, "/v1/chain/mode", Some(&mode))?)
    }

    /// Reads a handler.
    ///
    /// # Errors
    ///
    /// When there is no such handler, or no response.
    pub fn read(&self, handler: &str) -> Result<String, ClientError> {
        self.get::<Value>(&format!("/v1/handlers/{}", escaped(handler))).map(|value| value.value)
    }

    /// Writes a handler.
    ///
    /// # Errors
    ///
    /// When there is no such handler, it refuses the value, or there is no response.
    pub fn write(&self, handler: &str, value: &str) -> Result<(), ClientError> {
        let path = format!("/v1/handlers/{}", escaped(handler));
        self.call(Method::PUT, &path, Some(&Value { value: value.into() })).map(|_| ())
    }

    fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ClientError> {
        read(&self.call(Method::GET, path, None::<&()>)?)
    }

    fn call(&self, method: Method, path: &str, body: Option<&impl Serialize>) -> Result<Bytes, ClientError> {
        let body = body.map(serde_json::to_vec).transpose();
        let body = body.map_err(|error| ClientError::BadAnswer(error.to_string()))?;
        self.runtime.block_on(self.exchange(method, path, body.unwrap_or_default()))
    }

    async fn exchange(&self, method: Method, path: &str, body: Vec<u8>) -> Result<Bytes, ClientError> {
        let nobody = |why: String| ClientError::NoDaemon { at: self.socket.clone(), why };
        let stream =
            tokio::net::UnixStream::connect(&self.socket).await.map_err(|error| match error.kind() {
                std::io::ErrorKind::PermissionDenied => ClientError::NoRight(self.socket.clone()),
                _ => nobody(error.to_string()),
            })?;
        let shaken = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await;
        let (mut sender, connection) = shaken.map_err(|error| nobody(error.to_string()))?;
        tokio::spawn(connection);
        let request = Request::builder()
            .method(method)
            .uri(path)
            .header("host", "millrace")
            .header("content-type", "application/json")
            .body(Full::new(Bytes::from(body)))
            .map_err(|error| ClientError::BadAnswer(error.to_string()))?;
        let response =
            sender.send_request(request).await.map_err(|_| ClientError::HungUp(self.socket.clone()))?;
        let status = response.status();
        let body = response.into_body().collect().await;
        let bytes = body.map_err(|_| ClientError::HungUp(self.socket.clone()))?.to_bytes();
        if status.is_success() {
            return Ok(bytes);
        }
        check_format(&bytes)?;
        Err(ClientError::Refused(Refusal::from_failure(status.as_u16(), parse(&bytes)?)))
    }
}

fn read<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ClientError> {
    check_format(bytes)?;
    parse::<Answer<T>>(bytes).map(|answer| answer.answer)
}

/// Checks the format of a response before its other fields: another format may name these differently.
fn check_format(bytes: &[u8]) -> Result<(), ClientError> {
    #[derive(Deserialize)]
    struct Head {
        format: u32,
    }
    match parse::<Head>(bytes)?.format {
        FORMAT => Ok(()),
        other => Err(ClientError::OtherFormat(other)),
    }
}

fn parse<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, ClientError> {
    serde_json::from_slice(bytes).map_err(|error| ClientError::BadAnswer(error.to_string()))
}

/// A name, escaped as a part of a path.
fn escaped(name: &str) -> PercentEncode<'_> {
    const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');
    utf8_percent_encode(name, SEGMENT)
}

#[cfg(test)]
mod tests {
    use super::{ClientError, escaped, read};

    #[test]
    fn an_answer_in_another_format_is_told_whatever_else_it_has() {
        let read = |text: &str| read::<u64>(text.as_bytes());
        assert_eq!(read(r#"{"format": 1, "answer": 7}"#).ok(), Some(7));
        let other = read(r#"{"format": 2, "result": [7], "of": "later"}"#).expect_err("another");
        assert!(matches!(other, ClientError::OtherFormat(2)), "{other}");
        assert!(other.to_string().contains("format 2") && other.to_string().contains("format 1"), "{other}");
        for bad in [
            "7",
            r#"{"answer": 7}"#,
            r#"{"format": 1, "answer": "x"}"#,
            r#"{"format": 1, "answer": 7, "a": 1}"#,
        ] {
            assert!(matches!(read(bad), Err(ClientError::BadAnswer(_))), "{bad}");
        }
    }

    #[test]
    fn names_are_one_segment_of_a_path() {
        assert_eq!(escaped("nat-1_a.b").to_string(), "nat-1_a.b");
        assert_eq!(escaped("a/b?c#d e%ä").to_string(), "a%2Fb%3Fc%23d%20e%25%C3%A4");
    }
}
