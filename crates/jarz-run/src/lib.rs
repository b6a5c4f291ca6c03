//! Runs on disk: configuration, data, checkpoints, metrics and summaries around the trainer of [`jarz`].
//!
//! A run folder holds `run.toml` (the resolved configuration), `metrics.jsonl` (a row per logged iteration),
//! `summary.json` (final figures) and `checkpoints/`, and if asked for `tensorboard/`.

mod augment;
mod calibrate;
pub mod checkpoint;
mod clock;
pub mod config;
mod error;
mod evaluate;
pub mod files;
mod folder;
mod follow;
mod images;
pub mod metrics;
mod network;
mod problem;
mod runs;
mod sample;
mod state;
mod summary;
mod tensorboard;
mod train;
mod weights;

pub use calibrate::{Timing, calibrate};
pub use config::{Config, ConfigError};
pub use error::RunError;
pub use evaluate::{
    AnnealingReport, EvaluateRequest, Evaluation, Judgement, Progress, TraceRow, evaluate, judge,
};
pub use folder::{RunFolder, is_run, read_config};
pub use follow::{DamagedLine, MetricsReader, read_metrics};
pub use images::{ImageEvaluation, ImageRequest, ImageWalkers, evaluate_images, image_walkers, images_of};
pub use metrics::Row;
pub use network::load_images;
pub use problem::{network_setup, read_points};
pub use runs::{Many, resume_runs, resume_runs_on, train_runs, train_runs_on};
pub use sample::{SampleRequest, Samples, checkpoint_sha256, sample};
pub use summary::{RunsSummary, Summary, read_summary};
pub use train::{Engine, Session, resume, resume_on, train, train_on};
pub use weights::export;
