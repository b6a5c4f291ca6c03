//! The arguments.

use clap::{Args as ClapArgs, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Train energy-based models on the true cross-entropy, with walkers weighted by Jarzynski's equality.
#[derive(Debug, Parser)]
#[command(name = "jarz", version, about, long_about = None, after_help = "Start with 'jarz reproduce gmm', or with 'jarz init' and 'jarz train jarz.toml'.")]
pub struct Args {
    /// Say nothing but warnings, errors and results
    #[arg(long, short, global = true)]
    pub quiet: bool,
    /// Print results as JSON on standard output
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Train a model as a configuration file says
    Train(TrainArgs),
    /// Go on with a run that was stopped or killed; the result is the same as if it had not been
    Resume(ResumeArgs),
    /// Draw samples from a trained model
    Sample(SampleArgs),
    /// Judge a trained model: log Z and masses by annealing beside those of the training, cross-entropy, with error bars
    Evaluate(EvaluateArgs),
    /// Write a trained network's weights as a safetensors file that PyTorch can read
    Export(ExportArgs),
    /// Write a commented configuration to start from
    Init(InitArgs),
    /// Write the page of a run again, or one that compares several runs
    Report(ReportArgs),
    /// Show a run in the terminal, live
    Watch(WatchArgs),
    /// Show the page of a run in a browser, live, on this machine only
    Serve(ServeArgs),
    /// List the devices that can train besides the processor, and how to get others
    Devices,
    /// Get data sets known by name, and see which are there
    Data(DataArgs),
    /// Run an experiment of the paper ('jarz reproduce list' names them), or all
    Reproduce(ReproduceArgs),
    /// Say how far samples are from a reference: Frechet and kernel distances of their features, a classifier's score
    Metrics(MetricsArgs),
    /// Print shell completions
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

#[derive(Debug, ClapArgs)]
pub struct TrainArgs {
    /// Configuration in TOML ('jarz init' writes one)
    pub config: PathBuf,
    /// Change a key of the configuration, e.g. --set kernel.step_size=0.05 (may be repeated)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Folder of the run [default: runs/ and the configuration's name]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Threads; 0 means one per core. Results do not depend on it
    #[arg(long, value_name = "T")]
    pub threads: Option<usize>,
    /// Repeat with so many seeds, and give error bars from the scatter
    #[arg(long, value_name = "R")]
    pub runs: Option<usize>,
    /// Write event files for TensorBoard as well
    #[arg(long)]
    pub tensorboard: bool,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Overwrite an existing run
    #[arg(long)]
    pub force: bool,
}

/// Where to train.
#[derive(Debug, ClapArgs)]
pub struct DeviceArgs {
    /// Train on a device that 'jarz devices' lists [default: the processor]
    #[arg(long, value_name = "NAME")]
    pub device: Option<String>,
    /// Where the random numbers of moves on a device are made; they are the same up to rounding
    #[arg(long, value_enum, default_value_t = NoiseArg::Device, requires = "device")]
    pub noise: NoiseArg,
}

/// Sources of random numbers.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum NoiseArg {
    /// On the device
    Device,
    /// On the processor, to the last bit as without a device; slower
    Host,
}

#[derive(Debug, ClapArgs)]
pub struct ResumeArgs {
    /// Folder of the run
    pub dir: PathBuf,
    /// Extend the run to so many iterations in all
    #[arg(long, value_name = "K")]
    pub iterations: Option<u64>,
    /// Threads; 0 means one per core
    #[arg(long, value_name = "T")]
    pub threads: Option<usize>,
    #[command(flatten)]
    pub device: DeviceArgs,
}

#[derive(Debug, ClapArgs)]
pub struct SampleArgs {
    /// Folder of the run
    pub dir: PathBuf,
    /// How many samples; more than there are walkers if you like [default: the number of walkers]
    #[arg(long, short, value_name = "N")]
    pub n: Option<usize>,
    /// Further kernel steps, weighted so that they cause no bias [default: 100 if there are more samples than walkers, else 0]
    #[arg(long, value_name = "S")]
    pub steps: Option<u64>,
    /// Seed of the drawing
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder for the samples [default: samples/ in the run's folder]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Threads; 0 means one per core
    #[arg(long, value_name = "T", default_value_t = 0)]
    pub threads: usize,
    /// Overwrite existing samples
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, ClapArgs)]
pub struct EvaluateArgs {
    /// Folder of the run
    pub dir: PathBuf,
    /// Points for the cross-entropy: .npy, .npz or CSV [default: those it was trained on]
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Name of the array in an .npz that holds several
    #[arg(long, value_name = "NAME", requires = "data")]
    pub array: Option<String>,
    /// Judge these weights in place of the trained ones: safetensors, from 'jarz export' or PyTorch, for the run's network
    #[arg(long, value_name = "FILE")]
    pub weights: Option<PathBuf>,
    /// Walkers of the annealing
    #[arg(long, value_name = "N", default_value_t = 4096)]
    pub walkers: usize,
    /// Moves at each step of the annealing
    #[arg(long, value_name = "M", default_value_t = 2)]
    pub moves: u32,
    /// Friction of moves with momentum, 1 for example; without, the moves are MALA
    #[arg(long, value_name = "F")]
    pub friction: Option<f64>,
    /// Acceptance that the length of the moves is adapted to [default: 0.65, with momentum 0.9]
    #[arg(long, value_name = "A")]
    pub acceptance: Option<f64>,
    /// To what fraction one step of the annealing may bring the ESS; closer to 1 takes longer
    #[arg(long, value_name = "C", default_value_t = 0.9)]
    pub step_ess: f64,
    /// Seed of the annealing
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// File for the results [default: evaluate.json in the run's folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Threads; 0 means one per core. Results do not depend on it
    #[arg(long, value_name = "T", default_value_t = 0)]
    pub threads: usize,
    /// Overwrite an existing --out
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, ClapArgs)]
pub struct ExportArgs {
    /// Folder of the run
    pub dir: PathBuf,
    /// File for the weights; the architecture goes beside it, with the ending .toml [default: model.safetensors in the run's folder]
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, ClapArgs)]
pub struct MetricsArgs {
    /// Samples: a run, a folder that 'jarz sample' wrote, .npy/.npz/CSV, a folder of PNG images, a data set's name (mnist, cifar10:test, ...), or features:FILE
    #[arg(long, value_name = "SOURCE")]
    pub samples: String,
    /// What they are compared with; the same kinds of sources
    #[arg(long, value_name = "SOURCE")]
    pub reference: String,
    /// Network in ONNX format that turns images into features; without it the numbers themselves are the features
    #[arg(long, value_name = "FILE")]
    pub extractor: Option<PathBuf>,
    /// Values that the network wants its pixels in
    #[arg(long, value_enum, default_value_t = RangeArg::Symmetric, requires = "extractor")]
    pub range: RangeArg,
    /// The network is Inception-v3: call the results FID, KID and Inception score (see docs/metrics.md)
    #[arg(long)]
    pub inception: bool,
    /// Height, width and channels of the images in files of plain numbers, like 32x32x3 [default: those of the other source]
    #[arg(long, value_name = "HxWxC")]
    pub shape: Option<String>,
    /// Log-weights of the samples, one number each [default: those in the folder of samples, or none]
    #[arg(long, value_name = "FILE")]
    pub log_weights: Option<PathBuf>,
    /// At most so many samples, evenly spread
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub most: usize,
    /// At most so many of the reference, evenly spread
    #[arg(long, value_name = "N", default_value_t = 50_000)]
    pub most_reference: usize,
    /// At most so many of each for the kernel distance, whose time goes with their square
    #[arg(long, value_name = "N", default_value_t = 5_000)]
    pub kernel_samples: usize,
    /// Parts of the samples that give the score its scatter
    #[arg(long, value_name = "S", default_value_t = 10)]
    pub splits: usize,
    /// Seed of random choices
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Folder to write the features to, as .npy
    #[arg(long, value_name = "DIR")]
    pub save_features: Option<PathBuf>,
}

/// Values of pixels.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum RangeArg {
    /// From -1 to 1
    Symmetric,
    /// From 0 to 1
    Unit,
    /// From 0 to 255
    Bytes,
}

#[derive(Debug, ClapArgs)]
pub struct ReportArgs {
    /// Folders of runs, finished or not; several are compared
    #[arg(required = true, value_name = "DIR")]
    pub dirs: Vec<PathBuf>,
    /// Page to write [default: report.html in the run's folder; comparison.html here for several]
    #[arg(long, short, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Experiments on images: judge the models anew instead of taking what is kept in the runs' folders
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, ClapArgs)]
pub struct WatchArgs {
    /// Folder of a run, of repeated runs or of an experiment, finished or not
    pub dir: PathBuf,
    /// Print one picture as plain text and end; also what happens when the output is no terminal
    #[arg(long)]
    pub once: bool,
}

#[derive(Debug, ClapArgs)]
pub struct ServeArgs {
    /// Folder of a run, of repeated runs or of an experiment, finished or not
    pub dir: PathBuf,
    /// Port on 127.0.0.1; 0 takes any that is free
    #[arg(long, short, value_name = "P", default_value_t = 8377)]
    pub port: u16,
}

#[derive(Debug, ClapArgs)]
pub struct InitArgs {
    /// File to write
    #[arg(default_value = "jarz.toml")]
    pub file: PathBuf,
    /// Your data: .npy, .npz or CSV; without it the configuration uses synthetic data
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
}

#[derive(Debug, ClapArgs)]
pub struct DataArgs {
    #[command(subcommand)]
    pub command: DataCommand,
}

#[derive(Debug, Subcommand)]
pub enum DataCommand {
    /// Download a data set, or take files that are there, and verify it
    Get(DataGetArgs),
    /// Show the known data sets and which of them are cached
    List {
        /// Cache folder [default: JARZ_CACHE, or jarz in the user's cache folder]
        #[arg(long, value_name = "DIR")]
        cache: Option<PathBuf>,
    },
}

#[derive(Debug, ClapArgs)]
pub struct DataGetArgs {
    /// mnist, fashion-mnist or cifar10
    pub name: String,
    /// Take the files from this folder, plain or compressed, instead of downloading them
    #[arg(long, value_name = "DIR")]
    pub from: Option<PathBuf>,
    /// Download from this address only
    #[arg(long, value_name = "URL", conflicts_with = "from")]
    pub mirror: Option<String>,
    /// Cache folder [default: JARZ_CACHE, or jarz in the user's cache folder]
    #[arg(long, value_name = "DIR")]
    pub cache: Option<PathBuf>,
}

#[derive(Debug, ClapArgs)]
pub struct ReproduceArgs {
    /// Name of an experiment, a TOML file of your own, 'list', or 'all'
    pub name: String,
    /// Folder for the results [default: runs/ and the experiment's name; for 'all', runs/reproduce]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Size of the experiment
    #[arg(long, value_enum, default_value_t = ScaleArg::Quick)]
    pub scale: ScaleArg,
    /// Repeat with so many seeds [default: the experiment's own number]
    #[arg(long, value_name = "R")]
    pub runs: Option<usize>,
    /// First seed
    #[arg(long)]
    pub seed: Option<u64>,
    /// Cores to use; 0 means all. Results do not depend on it
    #[arg(long, value_name = "T", default_value_t = 0)]
    pub threads: usize,
    #[command(flatten)]
    pub device: DeviceArgs,
    /// Overwrite results of another experiment
    #[arg(long)]
    pub force: bool,
    /// Say what would be run and how long it would take on this machine, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

/// Sizes of an experiment.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum ScaleArg {
    /// A minute or so on a laptop (also: smoke)
    #[value(alias = "smoke")]
    Quick,
    /// About an hour, for experiments that have it (also: laptop)
    #[value(alias = "laptop")]
    Default,
    /// The numbers of the paper: hours or days
    Paper,
}

impl From<ScaleArg> for jarz_experiments::Scale {
    fn from(scale: ScaleArg) -> Self {
        match scale {
            ScaleArg::Quick => jarz_experiments::Scale::Quick,
            ScaleArg::Default => jarz_experiments::Scale::Default,
            ScaleArg::Paper => jarz_experiments::Scale::Paper,
        }
    }
}
