//! The commands, one file each.

mod board;
mod data;
mod devices;
mod evaluate;
mod export;
mod init;
mod metrics;
mod report;
mod reproduce;
mod sample;
mod serve;
mod train;
mod watch;

use crate::args::{Args, Command};
use crate::error::CliError;
use crate::ui::Ui;
use clap::CommandFactory;
use jarz_mpi::Job;

/// Runs a command.
pub fn run(command: Command, job: &Job, ui: &Ui) -> Result<(), CliError> {
    match command {
        Command::Train(args) => train::train(args, job, ui),
        Command::Resume(args) => train::resume(args, job, ui),
        _ if !job.ranks().is_alone() => Err(CliError::Message(format!(
            "{} ranks were started, but only 'jarz train' and 'jarz resume' share their work; start this command once",
            job.ranks().size()
        ))),
        Command::Sample(args) => sample::sample(args, ui),
        Command::Evaluate(args) => evaluate::evaluate(args, ui),
        Command::Export(args) => export::export(args, ui),
        Command::Data(args) => data::data(args, ui),
        Command::Devices => devices::devices(ui),
        Command::Metrics(args) => metrics::metrics(args, ui),
        Command::Init(args) => init::init(args, ui),
        Command::Reproduce(args) => reproduce::reproduce(args, ui),
        Command::Report(args) => report::report(args, ui),
        Command::Watch(args) => watch::watch(args),
        Command::Serve(args) => serve::serve(args, ui),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Args::command(), "jarz", &mut std::io::stdout());
            Ok(())
        }
    }
}

/// Prints a value as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| CliError::Message(e.to_string()))?;
    println!("{text}");
    Ok(())
}
