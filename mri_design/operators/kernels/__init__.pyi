from . import differences as differences
from . import fft as fft
from . import pixels as pixels
from . import wavelet as wavelet
