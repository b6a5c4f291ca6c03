//! Devices: which there are, and how one is opened.

use crate::error::Error;
use crate::names::{Api, Found, Name, Which};
use burn_tensor::{Device, Tensor};
use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// A device that works, and its name.
#[derive(Clone, Debug)]
pub(crate) struct Opened {
    pub name: Name,
    pub device: Device,
    /// Bytes of the largest array, where the device says so.
    pub largest: Option<u64>,
}

/// Runtimes can be started only once in a process.
static OPENED: Mutex<Vec<Opened>> = Mutex::new(Vec::new());

fn opened() -> MutexGuard<'static, Vec<Opened>> {
    OPENED.lock().unwrap_or_else(PoisonError::into_inner)
}

thread_local! {
    /// Whether a panic of this thread is an answer that somebody waits for.
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Work of drivers that is going on, and what a thread of theirs complained of first.
static GUARDED: AtomicUsize = AtomicUsize::new(0);
static COMPLAINT: Mutex<Option<String>> = Mutex::new(None);

fn complaint() -> MutexGuard<'static, Option<String>> {
    COMPLAINT.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a panic says.
fn words(cause: &(dyn Any + Send)) -> Option<&str> {
    cause.downcast_ref::<String>().map(String::as_str).or_else(|| cause.downcast_ref::<&str>().copied())
}

/// Whether a panic belongs to a thread that burn started for a device.
fn is_of_a_driver() -> bool {
    let of_burn = |name: &str| name.starts_with("DSD-") || name.starts_with("DSU-");
    GUARDED.load(Ordering::SeqCst) > 0 && std::thread::current().name().is_some_and(of_burn)
}

/// Runs work of a driver, which may panic instead of saying what is wrong, here or in a thread of its own; its words come back instead of going to
/// the terminal.
pub(crate) fn guarded<R>(work: impl FnOnce() -> R) -> Result<R, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if is_of_a_driver() {
                let text = words(panic.payload()).unwrap_or_default().to_string();
                complaint().get_or_insert(text);
            } else if !EXPECTED.get() {
                before(panic);
            }
        }));
    });
    let before = EXPECTED.replace(true);
    if GUARDED.fetch_add(1, Ordering::SeqCst) == 0 {
        // What a driver said of earlier work has nothing to do with this.
        complaint().take();
    }
    let result = panic::catch_unwind(AssertUnwindSafe(work));
    GUARDED.fetch_sub(1, Ordering::SeqCst);
    EXPECTED.set(before);
    result.map_err(|cause| {
        let text = words(&*cause).unwrap_or("its driver gave up without a reason");
        with_complaint(text)
    })
}

/// The first line of a reason, and what the driver's own thread had to say before.
pub(crate) fn with_complaint(reason: &str) -> String {
    let reason = reason.lines().next().unwrap_or_default();
    match complaint().take() {
        Some(text) => format!("{} ({reason})", text.lines().next().unwrap_or_default()),
        None => reason.to_string(),
    }
}

/// Opens a device and lets it compute something.
pub(crate) fn open(name: Name) -> Result<Opened, Error> {
    if !name.api.is_compiled() {
        return Err(Error::NotCompiled { name: name.to_string(), feature: name.api.name() });
    }
    let mut all = opened();
    if let Some(known) = all.iter().find(|o| o.name == name) {
        return Ok(known.clone());
    }
    let missing = |reason: String| Error::Missing { name: name.to_string(), reason };
    let works = || {
        let (device, largest) = start(name)?;
        let two =
            (Tensor::<1>::ones([1], &device) + 1.0).try_into_scalar::<f32>().map_err(|e| e.to_string())?;
        match two == 2.0 {
            true => Ok(Opened { name, device, largest }),
            false => Err(format!("it says that 1 + 1 = {two}")),
        }
    };
    let opened = guarded(works).and_then(|result| result).map_err(missing)?;
    all.push(opened.clone());
    Ok(opened)
}

#[cfg(feature = "wgpu-any")]
fn start_wgpu(name: Name) -> Result<(Device, Option<u64>), String> {
    use burn_tensor::DeviceKind;
    use burn_tensor::wgpu::WgpuBackend;
    let kind = match name.which {
        Which::Default | Which::Number(_) => DeviceKind::DefaultDevice,
        Which::Discrete(n) => DeviceKind::DiscreteGpu(n),
        Which::Integrated(n) => DeviceKind::IntegratedGpu(n),
        Which::Virtual(n) => DeviceKind::VirtualGpu(n),
        Which::Software => DeviceKind::Cpu,
    };
    let api = match name.api {
        Api::Vulkan => WgpuBackend::Vulkan,
        Api::Metal => WgpuBackend::Metal,
        _ => WgpuBackend::Auto,
    };
    let options = Device::wgpu_options().device_kind(kind).graphics_api(api);
    let (device, setup) = options.init_with_setup().map_err(|e| e.to_string())?;
    let limits = setup.device.limits();
    Ok((device, Some(limits.max_buffer_size.min(limits.max_storage_buffer_binding_size))))
}

fn start(name: Name) -> Result<(Device, Option<u64>), String> {
    match name.api {
        #[cfg(feature = "cuda")]
        Api::Cuda => Ok((Device::cuda(number(name.which)), None)),
        #[cfg(feature = "rocm")]
        Api::Rocm => Ok((Device::rocm(number(name.which)), None)),
        #[cfg(feature = "wgpu-any")]
        Api::Wgpu | Api::Vulkan | Api::Metal => start_wgpu(name),
        #[allow(unreachable_patterns)]
        _ => Err("this program was built without it".into()),
    }
}

#[cfg(any(feature = "cuda", feature = "rocm"))]
fn number(which: Which) -> usize {
    match which {
        Which::Number(n) => n,
        _ => 0,
    }
}

/// All devices of the interfaces this program was built with.
pub(crate) fn devices() -> Vec<Found> {
    let mut found = Vec::new();
    for api in Api::ALL {
        if !api.is_compiled() {
            found.push(Found::NotCompiled(api));
            continue;
        }
        let before = found.len();
        let mut reason = String::new();
        for series in candidates(api) {
            for which in series {
                match open(Name { api, which }) {
                    Ok(opened) => {
                        found.push(Found::Device { name: opened.name, title: title(&opened.device) })
                    }
                    Err(e) => {
                        if let Error::Missing { reason: why, .. } = e {
                            reason = why;
                        }
                        break;
                    }
                }
            }
        }
        if found.len() == before {
            found.push(Found::Nothing { api, reason });
        }
    }
    found
}

/// Devices that may exist, in series that end with the first one that does not.
fn candidates(api: Api) -> Vec<Vec<Which>> {
    const MOST: usize = 16;
    match api {
        Api::Cuda | Api::Rocm => vec![(0..MOST).map(Which::Number).collect()],
        Api::Metal | Api::Vulkan | Api::Wgpu => vec![
            (0..MOST).map(Which::Discrete).collect(),
            (0..MOST).map(Which::Integrated).collect(),
            (0..MOST).map(Which::Virtual).collect(),
            vec![Which::Software],
        ],
    }
}

fn title(device: &Device) -> String {
    let identity = guarded(|| device.identity()).ok().flatten();
    identity.map_or_else(|| "it does not say what it is".into(), |identity| identity.name)
}
