//! Serves a platform by HTTP over a UNIX socket.
//!
//! | request | effect |
//! |---|---|
//! | `GET /v1/status` | returns the status of the daemon and its chain ([`Status`](crate::api::Status)) |
//! | `GET /v1/stats` | returns the counters ([`Stats`](crate::api::Stats)) |
//! | `GET /v1/nfs` | returns the NFs in processes ([`NfStatus`](crate::api::NfStatus)) |
//! | `POST /v1/nfs/NAME/start`, `stop`, `restart` | starts, stops or restarts an NF |
//! | `GET /v1/nfs/NAME/log/FROM` | returns its log from a line on ([`Log`](crate::api::Log)) |
//! | `POST /v1/chain`, `PUT /v1/chain` | runs a chain ([`Order`]); with PUT it replaces the running one |
//! | `DELETE /v1/chain` | ends the chain |
//! | `PUT /v1/chain/mode` | changes the chain's execution mode ([`ExecutionMode`]) |
//! | `GET /v1/handlers/NAME`, `PUT ...` | reads or writes a handler |
//! | `GET /metrics` | returns the counters for Prometheus |
//!
//! Each response is an [`Answer`] or a [`Failure`](crate::api::Failure) with the number of the format, except that to Prometheus.
//!
//! The server accepts connections from the daemon's own user and from root; the kernel reports the peer's
//! user. With a group, the members of the group may send the requests that change nothing (GET): the socket
//! belongs to the group, and the kernel refuses all others.

use crate::api::{Act, Answer, ExecutionMode, FORMAT, Order, Value};
use crate::metrics;
use crate::platform::{Platform, Refusal};
use axum::extract::connect_info::{ConnectInfo, Connected};
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, Request, State};
use axum::http::{Method, StatusCode, Uri};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::serve::IncomingStream;
use axum::{Json, Router};
use serde::de::IntoDeserializer;
use serde::de::value::Error as NoSuchWord;
use serde::{Deserialize, Serialize};
use std::io;
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

type At = State<Arc<dyn Platform>>;
type Body<T> = Result<Json<T>, JsonRejection>;

/// Serves until `end` becomes true or its sender is dropped. Members of `viewers`, a group by its number, may
/// see.
///
/// # Errors
///
/// When the socket cannot be made.
pub async fn serve(
    place: &crate::RuntimeDir,
    viewers: Option<u32>,
    platform: Arc<dyn Platform>,
    mut end: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = place.listen(viewers)?;
    listener.set_nonblocking(true)?;
    let listener = Trusted { listener: UnixListener::from_std(listener)?, has_viewers: viewers.is_some() };
    let chain = post(|at: At, order: Body<Order>| ask(at, |platform| platform.load(body(order)?, false)))
        .put(|at: At, order: Body<Order>| ask(at, |platform| platform.load(body(order)?, true)))
        .delete(|at: At| ask(at, |platform| platform.unload()));
    let set_mode = |at: At, mode: Body<ExecutionMode>| ask(at, |platform| platform.set_mode(body(mode)?));
    let handler = get(|at: At, Path(handler): Path<String>| {
        ask(at, move |platform| platform.read(&handler).map(|value| Value { value }))
    })
    .put(|at: At, Path(handler): Path<String>, value: Body<Value>| {
        ask(at, move |platform| platform.write(&handler, &body(value)?.value))
    });
    let router = Router::new()
        .route("/v1/status", get(|at: At| ask(at, |platform| Ok(platform.status()))))
        .route("/v1/stats", get(|at: At| ask(at, |platform| platform.stats())))
        .route("/v1/nfs", get(|at: At| ask(at, |platform| platform.nfs())))
        .route("/v1/nfs/{nf}/log/{from}", get(log))
        .route("/v1/nfs/{nf}/{act}", post(act))
        .route("/v1/chain", chain)
        .route("/v1/chain/mode", put(set_mode))
        // The path of version 0.1.0.
        .route("/v1/chain/form", put(set_mode))
        .route("/v1/handlers/{handler}", handler)
        .route("/metrics", get(prometheus))
        .fallback(no_such_request)
        .method_not_allowed_fallback(no_such_request)
        .layer(middleware::from_fn(only_seeing))
        .with_state(platform);
    let ended = async move {
        // An error means that the sender was dropped, which ends the server, too.
        let _ = end.wait_for(|end| *end).await;
    };
    let service = router.into_make_service_with_connect_info::<Caller>();
    axum::serve(listener, service).with_graceful_shutdown(ended).await
}

/// A listener that accepts connections of the daemon's own user and of root, and of viewers.
struct Trusted {
    listener: UnixListener,
    has_viewers: bool,
}

/// The client at the other end of a connection.
#[derive(Clone, Copy)]
struct Caller {
    may_change: bool,
}

impl Connected<IncomingStream<'_, Trusted>> for Caller {
    fn connect_info(stream: IncomingStream<'_, Trusted>) -> Caller {
        Caller { may_change: is_trusted(stream.io()) }
    }
}

/// Refuses requests that change something from clients that may only see.
async fn only_seeing(ConnectInfo(caller): ConnectInfo<Caller>, request: Request, next: Next) -> Response {
    if caller.may_change || request.method() == Method::GET {
        return next.run(request).await;
    }
    refused(&Refusal::Forbidden("you may see and not change: only the daemon's own user and root may".into()))
}

impl axum::serve::Listener for Trusted {
    type Io = UnixStream;
    type Addr = tokio::net::unix::SocketAddr;

    async fn accept(&mut self) -> (UnixStream, Self::Addr) {
        loop {
            match self.listener.accept().await {
                Ok((stream, address)) if self.has_viewers || is_trusted(&stream) => return (stream, address),
                // Any other user's connection is closed.
                Ok(_) => {}
                // A temporary error, such as a lack of file descriptors.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.listener.local_addr()
    }
}

fn is_trusted(stream: &UnixStream) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == ours || peer.uid() == 0)
}

/// Calls the platform on a thread that may block. A panic is an error, too.
async fn call<T: Send + 'static>(
    platform: Arc<dyn Platform>,
    question: impl FnOnce(&dyn Platform) -> T + Send + 'static,
) -> Result<T, String> {
    let call = move || diag::caught(|| question(platform.as_ref()));
    tokio::task::spawn_blocking(call).await.unwrap_or_else(|error| Err(error.to_string()))
}

/// The response to a request that the platform answers.
async fn ask<T: Serialize + Send + 'static>(
    State(platform): At,
    question: impl FnOnce(&dyn Platform) -> Result<T, Refusal> + Send + 'static,
) -> Response {
    match call(platform, question).await.unwrap_or_else(|why| Err(Refusal::Failed(why))) {
        Ok(answer) => Json(Answer { format: FORMAT, answer }).into_response(),
        Err(refusal) => refused(&refusal),
    }
}

fn refused(refusal: &Refusal) -> Response {
    let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    (status, Json(refusal.failure())).into_response()
}

async fn no_such_request(method: Method, uri: Uri) -> Response {
    refused(&Refusal::Unknown(format!("there is no request {method} {}", uri.path())))
}

/// The parsed body of a request.
fn body<T>(read: Body<T>) -> Result<T, Refusal> {
    read.map(|Json(body)| body).map_err(|why| Refusal::Mistakes(why.body_text()))
}

async fn log(at: At, Path((nf, from)): Path<(String, String)>) -> Response {
    ask(at, move |platform| {
        let number =
            from.parse().map_err(|_| Refusal::Mistakes(format!("`{from}` is no number of a line")))?;
        platform.log(&nf, number)
    })
    .await
}

async fn act(at: At, Path((nf, act)): Path<(String, String)>) -> Response {
    ask(at, move |platform| {
        let known = Act::deserialize(act.as_str().into_deserializer()).map_err(|_: NoSuchWord| {
            Refusal::Unknown(format!("an NF cannot {act}: it can start, stop and restart"))
        })?;
        platform.act(&nf, known)
    })
    .await
}

async fn prometheus(State(platform): At) -> Response {
    let text = |platform: &dyn Platform| metrics::text(&platform.status(), platform.stats().ok().as_ref());
    match call(platform, text).await {
        Ok(text) => ([("content-type", metrics::CONTENT_TYPE)], text).into_response(),
        Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, why).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{ChainStatus, InstanceState, Log, NfStatus, Stats, Status};
    use crate::{Client, ClientError, RuntimeDir};
    use std::io::{Read, Write};

    /// A platform that returns its arguments.
    struct Echo;

    impl Platform for Echo {
        fn status(&self) -> Status {
            Status { version: "echo".into(), ..Status::default() }
        }

        fn stats(&self) -> Result<Stats, Refusal> {
            Err(Refusal::Conflict("no chain is loaded".into()))
        }

        fn nfs(&self) -> Result<Vec<NfStatus>, Refusal> {
            Ok(vec![])
        }

        fn act(&self, nf: &str, act: Act) -> Result<Vec<NfStatus>, Refusal> {
            let state = if act == Act::Stop { InstanceState::Stopped } else { InstanceState::Up };
            let instances = vec![crate::api::Instance { state, ..Default::default() }];
            Ok(vec![NfStatus { name: nf.into(), instances, ..NfStatus::default() }])
        }

        fn log(&self, _: &str, from: u64) -> Result<Log, Refusal> {
            Ok(Log { next: from, ..Log::default() })
        }

        fn load(&self, order: Order, _: bool) -> Result<ChainStatus, Refusal> {
            Ok(ChainStatus { path: order.chain, ..ChainStatus::default() })
        }

        fn unload(&self) -> Result<Stats, Refusal> {
            panic!("it breaks")
        }

        fn set_mode(&self, mode: ExecutionMode) -> Result<ChainStatus, Refusal> {
            Ok(ChainStatus { fused: usize::from(mode == ExecutionMode::Fused), ..ChainStatus::default() })
        }

        fn read(&self, handler: &str) -> Result<String, Refusal> {
            Ok(handler.into())
        }

        fn write(&self, _: &str, _: &str) -> Result<(), Refusal> {
            Ok(())
        }
    }

    /// Runs a test with a daemon that serves in a temporary folder.
    fn served(test: impl FnOnce(&RuntimeDir)) {
        let folder = tempfile::tempdir().expect("a folder");
        let place = RuntimeDir::new(Some(folder.path()));
        let (end, ended) = watch::channel(false);
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let serving = place.clone();
        let server = runtime.spawn(async move { serve(&serving, None, Arc::new(Echo), ended).await });
        while !place.control().exists() {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        test(&place);
        end.send(true).expect("it listens");
        runtime.block_on(server).expect("it ends").expect("well");
    }

    /// Sends a request and returns the status and the body of the response.
    fn raw(place: &RuntimeDir, method: &str, path: &str, body: &str) -> (u16, serde_json::Value) {
        let mut stream = std::os::unix::net::UnixStream::connect(place.control()).expect("it answers");
        let length = body.len();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-type: application/json\r\n\
             content-length: {length}\r\n\r\n{body}"
        )
        .expect("written");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("an answer");
        let status = answer.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let body = answer.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
        (status, serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}")))
    }

    #[test]
    fn a_client_gets_what_the_platform_says() {
        served(|place| {
            let client = Client::new(place).expect("a client");
            assert_eq!(client.status().expect("a status").version, "echo");
            let nfs = client.act("a b/c", Act::Restart).expect("it restarts");
            assert_eq!((nfs[0].name.as_str(), nfs[0].instances[0].state), ("a b/c", InstanceState::Up));
            assert_eq!(client.log("nf", 7).expect("a log").next, 7);
            assert_eq!(
                client.load(&Order::new("a.toml"), false).expect("it runs").path.to_str(),
                Some("a.toml")
            );
            assert_eq!(client.set_mode(ExecutionMode::Fused).expect("it does").fused, 1);
            assert_eq!(client.read("nf/c.count").expect("a value"), "nf/c.count");
            client.write("nf/c.reset", "").expect("written");
            let refused = client.stats().expect_err("no chain");
            assert!(matches!(refused, ClientError::Refused(Refusal::Conflict(_))), "{refused}");
            let broken = client.unload().expect_err("it breaks");
            assert!(matches!(broken, ClientError::Refused(Refusal::Failed(_))), "{broken}");
        });
    }

    #[test]
    fn every_answer_has_a_format_and_what_is_not_known_is_refused() {
        served(|place| {
            let mut last = (0, serde_json::Value::Null);
            let mut ask = |method: &str, path: &str, body: &str| {
                last = raw(place, method, path, body);
                assert_eq!(last.1["format"], FORMAT, "{method} {path}: {last:?}");
                last.clone()
            };
            assert_eq!(ask("GET", "/v1/status", "").1["answer"]["version"], "echo");
            let wrong = [
                (404, "GET", "/v2/status", ""),
                (404, "DELETE", "/v1/status", ""),
                (404, "POST", "/v1/nfs/nf/pause", ""),
                (422, "GET", "/v1/nfs/nf/log/first", ""),
                (422, "POST", "/v1/chain", r#"{"chain": "a.toml", "brust": 8}"#),
                (422, "POST", "/v1/chain", "chain"),
                (422, "PUT", "/v1/chain/mode", r#""Fused""#),
                (422, "PUT", "/v1/handlers/a.b", r#"{"value": "1", "append": true}"#),
            ];
            for (status, method, path, body) in wrong {
                let (got, answer) = ask(method, path, body);
                assert_eq!(got, status, "{method} {path} {body}: {answer}");
                assert!(answer["error"].as_str().is_some_and(|error| !error.is_empty()), "{answer}");
            }
            assert!(
                ask("POST", "/v1/chain", r#"{"chain": "a", "brust": 8}"#).1.to_string().contains("`brust`")
            );
        });
    }
}
