//! The commands, one file each.

mod evaluate;
mod init;
mod report;
mod sample;
mod serve;
mod train;
mod watch;

use crate::args::{Args, Command, ReproduceArgs};
use crate::error::CliError;
use crate::reproduce::{self, ReproduceOptions};
use crate::ui::Ui;
use clap::CommandFactory;
use std::path::PathBuf;

/// Runs a command.
pub fn run(command: Command, ui: &Ui) -> Result<(), CliError> {
    match command {
        Command::Train(args) => train::train(args, ui),
        Command::Resume(args) => train::resume(args, ui),
        Command::Sample(args) => sample::sample(args, ui),
        Command::Evaluate(args) => evaluate::evaluate(args, ui),
        Command::Init(args) => init::init(args, ui),
        Command::Reproduce(args) => reproduce(args, ui),
        Command::Report(args) => report::report(args, ui),
        Command::Watch(args) => watch::watch(args),
        Command::Serve(args) => serve::serve(args, ui),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Args::command(), "jarz", &mut std::io::stdout());
            Ok(())
        }
    }
}

fn reproduce(args: ReproduceArgs, ui: &Ui) -> Result<(), CliError> {
    if args.name == "list" {
        let all = reproduce::list();
        if ui.json {
            let rows: Vec<_> = all.iter().map(|(n, t)| serde_json::json!({"name": n, "title": t})).collect();
            return print_json(&rows);
        }
        for (name, title) in all {
            println!("{name:<20} {title}");
        }
        return Ok(());
    }
    let stem = PathBuf::from(&args.name);
    let stem = stem.file_stem().unwrap_or_default().to_string_lossy().to_string();
    let options = ReproduceOptions {
        out: args.out.unwrap_or_else(|| PathBuf::from("runs").join(stem)),
        name: args.name,
        scale: args.scale,
        runs: args.runs,
        seed: args.seed,
        threads: args.threads,
        force: args.force,
    };
    let summary = reproduce::reproduce(&options, ui)?;
    if ui.json {
        return print_json(&summary);
    }
    let out = options.out.display();
    println!("figures: {out}/figures, page: {out}/report.html, numbers: {out}/summary.json");
    Ok(())
}

/// Prints a value as JSON.
fn print_json(value: &impl serde::Serialize) -> Result<(), CliError> {
    let text = serde_json::to_string_pretty(value).map_err(|e| CliError::Message(e.to_string()))?;
    println!("{text}");
    Ok(())
}
