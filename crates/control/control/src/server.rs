//! Serves a platform by HTTP over a UNIX socket.
//!
//! | request | what it does |
//! |---|---|
//! | `GET /v1/status` | the daemon and its chain ([`Status`](crate::api::Status)) |
//! | `GET /v1/stats` | the accounts ([`Stats`](crate::api::Stats)) |
//! | `GET /v1/nfs` | NFs in processes ([`NfStatus`](crate::api::NfStatus)) |
//! | `POST /v1/nfs/NAME/start`, `stop`, `restart` | starts and stops one |
//! | `GET /v1/nfs/NAME/log/FROM` | what it wrote from a line on ([`Log`](crate::api::Log)) |
//! | `POST /v1/chain`, `PUT /v1/chain` | runs a chain ([`Order`]); with PUT in the place of another |
//! | `DELETE /v1/chain` | ends it |
//! | `PUT /v1/chain/form` | has it run in a form ([`Form`]) from now on |
//! | `GET /v1/handlers/NAME`, `PUT ...` | reads or writes a handler |
//! | `GET /metrics` | the accounts for Prometheus |
//!
//! Whoever is at the other end must be the daemon's own user, or root: the system says who it is.

use crate::api::{Act, Failure, Form, Order, Value};
use crate::metrics;
use crate::platform::{Platform, Refusal};
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post, put};
use axum::{Json, Router};
use serde::Serialize;
use std::io;
use std::sync::Arc;
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::watch;

type Shared = Arc<dyn Platform>;

/// Serves until `end` says so.
///
/// # Errors
///
/// When the socket cannot be made.
pub async fn serve(
    place: &crate::Place,
    platform: Arc<dyn Platform>,
    mut end: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = UnixListener::bind(place.control())?;
    let router = Router::new()
        .route("/v1/status", get(status))
        .route("/v1/stats", get(stats))
        .route("/v1/nfs", get(nfs))
        .route("/v1/nfs/{nf}/log/{from}", get(log))
        .route("/v1/nfs/{nf}/{act}", post(act))
        .route("/v1/chain", post(load).put(swap).delete(unload))
        .route("/v1/chain/form", put(form))
        .route("/v1/handlers/{handler}", get(read).put(write))
        .route("/metrics", get(prometheus))
        .with_state(platform);
    let ended = async move {
        // Whoever would say so is gone: that is an end, too.
        let _ = end.wait_for(|end| *end).await;
    };
    axum::serve(Trusted(listener), router).with_graceful_shutdown(ended).await
}

/// Accepts the daemon's own user, and root.
struct Trusted(UnixListener);

impl axum::serve::Listener for Trusted {
    type Io = UnixStream;
    type Addr = tokio::net::unix::SocketAddr;

    async fn accept(&mut self) -> (UnixStream, Self::Addr) {
        loop {
            match self.0.accept().await {
                Ok((stream, address)) if is_trusted(&stream) => return (stream, address),
                // Hung up on.
                Ok(_) => {}
                // No descriptors, say: it passes.
                Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
            }
        }
    }

    fn local_addr(&self) -> io::Result<Self::Addr> {
        self.0.local_addr()
    }
}

fn is_trusted(stream: &UnixStream) -> bool {
    let ours = rustix::process::geteuid().as_raw();
    stream.peer_cred().is_ok_and(|peer| peer.uid() == ours || peer.uid() == 0)
}

/// Asks the platform, on a thread that may wait. A panic is an answer, too.
async fn ask<T: Serialize + Send + 'static>(
    platform: Shared,
    question: impl FnOnce(&dyn Platform) -> Result<T, Refusal> + Send + 'static,
) -> Response {
    let ask =
        move || diag::caught(|| question(platform.as_ref())).unwrap_or_else(|why| Err(Refusal::Failed(why)));
    let answer = tokio::task::spawn_blocking(ask).await;
    let answer = answer.unwrap_or_else(|error| Err(Refusal::Failed(error.to_string())));
    match answer {
        Ok(answer) => Json(answer).into_response(),
        Err(refusal) => {
            let status = StatusCode::from_u16(refusal.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            (status, Json(Failure { error: refusal.text().into() })).into_response()
        }
    }
}

async fn status(State(platform): State<Shared>) -> Response {
    ask(platform, |platform| Ok(platform.status())).await
}

async fn stats(State(platform): State<Shared>) -> Response {
    ask(platform, |platform| platform.stats()).await
}

async fn nfs(State(platform): State<Shared>) -> Response {
    ask(platform, |platform| platform.nfs()).await
}

async fn log(State(platform): State<Shared>, Path((nf, from)): Path<(String, u64)>) -> Response {
    ask(platform, move |platform| platform.log(&nf, from)).await
}

async fn act(State(platform): State<Shared>, Path((nf, act)): Path<(String, String)>) -> Response {
    ask(platform, move |platform| {
        let act = match act.as_str() {
            "start" => Act::Start,
            "stop" => Act::Stop,
            "restart" => Act::Restart,
            other => {
                let text = format!("an NF cannot {other}: it can start, stop and restart");
                return Err(Refusal::Unknown(text));
            }
        };
        platform.act(&nf, act)
    })
    .await
}

async fn load(State(platform): State<Shared>, Json(order): Json<Order>) -> Response {
    ask(platform, |platform| platform.load(order, false)).await
}

async fn swap(State(platform): State<Shared>, Json(order): Json<Order>) -> Response {
    ask(platform, |platform| platform.load(order, true)).await
}

async fn unload(State(platform): State<Shared>) -> Response {
    ask(platform, |platform| platform.unload()).await
}

async fn form(State(platform): State<Shared>, Json(form): Json<Form>) -> Response {
    ask(platform, move |platform| platform.form(form)).await
}

async fn read(State(platform): State<Shared>, Path(handler): Path<String>) -> Response {
    ask(platform, move |platform| platform.read(&handler).map(|value| Value { value })).await
}

async fn write(
    State(platform): State<Shared>,
    Path(handler): Path<String>,
    Json(value): Json<Value>,
) -> Response {
    ask(platform, move |platform| platform.write(&handler, &value.value)).await
}

async fn prometheus(State(platform): State<Shared>) -> Response {
    let answer = tokio::task::spawn_blocking(move || {
        diag::caught(|| {
            let (status, stats) = (platform.status(), platform.stats().ok());
            metrics::text(&status, stats.as_ref())
        })
    });
    match answer.await.unwrap_or_else(|error| Err(error.to_string())) {
        Ok(text) => ([("content-type", metrics::CONTENT_TYPE)], text).into_response(),
        Err(why) => (StatusCode::INTERNAL_SERVER_ERROR, why).into_response(),
    }
}
