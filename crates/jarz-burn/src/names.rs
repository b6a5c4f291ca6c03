//! Names of devices, and those there are.

use crate::error::Error;
use std::str::FromStr;

/// An interface to devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Api {
    /// NVIDIA's.
    Cuda,
    /// AMD's.
    Rocm,
    /// Apple's.
    Metal,
    /// Vulkan, with shaders in SPIR-V.
    Vulkan,
    /// WebGPU on whatever there is (Vulkan, Metal, DirectX), with shaders in WGSL: runs almost everywhere.
    Wgpu,
}

impl Api {
    /// All of them.
    pub const ALL: [Api; 5] = [Api::Cuda, Api::Rocm, Api::Metal, Api::Vulkan, Api::Wgpu];

    /// Name of the interface, and of the cargo feature it needs.
    pub fn name(self) -> &'static str {
        match self {
            Api::Cuda => "cuda",
            Api::Rocm => "rocm",
            Api::Metal => "metal",
            Api::Vulkan => "vulkan",
            Api::Wgpu => "wgpu",
        }
    }

    /// Whether this program was built with it.
    pub fn is_compiled(self) -> bool {
        match self {
            Api::Cuda => cfg!(feature = "cuda"),
            Api::Rocm => cfg!(feature = "rocm"),
            Api::Metal => cfg!(feature = "metal"),
            Api::Vulkan => cfg!(feature = "vulkan"),
            Api::Wgpu => cfg!(feature = "wgpu"),
        }
    }

    /// What it is for.
    pub fn what(self) -> &'static str {
        match self {
            Api::Cuda => "GPUs of NVIDIA; needs their driver and the CUDA toolkit",
            Api::Rocm => "GPUs of AMD; needs ROCm",
            Api::Metal => "GPUs of Apple",
            Api::Vulkan => "GPUs of any maker by Vulkan, shaders in SPIR-V",
            Api::Wgpu => "GPUs of any maker by Vulkan, Metal or DirectX, shaders in WGSL",
        }
    }

    /// Whether its devices are told apart by their number alone.
    fn is_numbered(self) -> bool {
        matches!(self, Api::Cuda | Api::Rocm)
    }
}

/// Which device of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// Whichever it likes best.
    Default,
    /// By its number (CUDA and ROCm).
    Number(usize),
    /// A graphics card.
    Discrete(usize),
    /// Part of the processor.
    Integrated(usize),
    /// Of a virtual machine.
    Virtual(usize),
    /// A driver that computes on the processor.
    Software,
}

/// Name of a device: `wgpu`, `wgpu:discrete:1`, `wgpu:software`, `cuda:0`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// The interface.
    pub api: Api,
    /// Which of its devices.
    pub which: Which,
}

impl FromStr for Name {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let unknown = || {
            let known = "they are named as in cuda, cuda:1, rocm:0, metal, vulkan:integrated:0, wgpu, \
                         wgpu:discrete:0 or wgpu:software";
            Error::Unknown { name: text.into(), known: known.into() }
        };
        let mut parts = text.split(':');
        let api = parts.next().and_then(|name| Api::ALL.into_iter().find(|a| a.name() == name));
        let api = api.ok_or_else(unknown)?;
        let rest: Vec<&str> = parts.collect();
        let number = |text: &str| text.parse::<usize>().map_err(|_| unknown());
        let which = match (api.is_numbered(), rest.as_slice()) {
            (_, []) => Which::Default,
            (true, [n]) => Which::Number(number(n)?),
            (false, ["discrete", n]) => Which::Discrete(number(n)?),
            (false, ["integrated", n]) => Which::Integrated(number(n)?),
            (false, ["virtual", n]) => Which::Virtual(number(n)?),
            (false, ["software"]) => Which::Software,
            _ => return Err(unknown()),
        };
        Ok(Name { api, which })
    }
}

impl std::fmt::Display for Name {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let api = self.api.name();
        match self.which {
            Which::Default => write!(f, "{api}"),
            Which::Number(n) => write!(f, "{api}:{n}"),
            Which::Discrete(n) => write!(f, "{api}:discrete:{n}"),
            Which::Integrated(n) => write!(f, "{api}:integrated:{n}"),
            Which::Virtual(n) => write!(f, "{api}:virtual:{n}"),
            Which::Software => write!(f, "{api}:software"),
        }
    }
}

/// A device that could be used, or an interface that cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// A device.
    Device {
        /// What to give to `--device`.
        name: Name,
        /// What it calls itself.
        title: String,
    },
    /// An interface without a device.
    Nothing {
        /// The interface.
        api: Api,
        /// What its driver says.
        reason: String,
    },
    /// An interface this program was built without.
    NotCompiled(Api),
}

/// Where the random numbers of moves come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Noise {
    /// The device, which makes the processor's numbers up to rounding.
    #[default]
    Device,
    /// The processor, which sends them over for every step: the last bit is that of a run without a device.
    Host,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_go_back_and_forth() {
        for text in
            ["cuda", "cuda:1", "rocm:0", "metal", "vulkan:integrated:0", "wgpu:virtual:2", "wgpu:software"]
        {
            assert_eq!(text.parse::<Name>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn other_names_are_refused_with_examples() {
        for text in
            ["", "gpu", "cuda:x", "cuda:discrete:0", "wgpu:0", "wgpu:discrete", "wgpu:software:1", "cuda:-1"]
        {
            let e = text.parse::<Name>().unwrap_err().to_string();
            assert!(e.contains(&format!("'{text}'")) && e.contains("jarz devices"), "{e}");
        }
    }
}
