/** Reading QR codes, where the browser can. */

interface Detector {
  detect(source: ImageBitmapSource): Promise<readonly { readonly rawValue: string }[]>;
}

const { BarcodeDetector } = globalThis as {
  readonly BarcodeDetector?: new (options: { readonly formats: readonly string[] }) => Detector;
};

/** Whether the browser reads QR codes at all. */
export const canScan = BarcodeDetector !== undefined;

/** Milliseconds between two looks at the camera's picture. */
const pause = 200;

/** Returns the text of the QR code in a picture; `undefined` if there is none, or it cannot be read. */
export async function readPicture(picture: Blob): Promise<string | undefined> {
  if (BarcodeDetector === undefined) return undefined;
  const bitmap = await createImageBitmap(picture);
  try {
    const [found] = await new BarcodeDetector({ formats: ['qr_code'] }).detect(bitmap);
    return found?.rawValue;
  } finally {
    bitmap.close();
  }
}

/**
 * Shows the camera in an element until it sees a QR code or is stopped.
 *
 * @returns the code's text; `undefined` after the signal
 * @throws DOMException if there is no camera, or the person does not permit it
 */
export async function scanCamera(
  video: HTMLVideoElement,
  signal: AbortSignal,
): Promise<string | undefined> {
  if (BarcodeDetector === undefined) return undefined;
  const detector = new BarcodeDetector({ formats: ['qr_code'] });
  const stream = await navigator.mediaDevices.getUserMedia({
    video: { facingMode: 'environment' },
  });
  try {
    video.srcObject = stream;
    await video.play();
    while (!signal.aborted) {
      const [found] = await detector.detect(video);
      if (found !== undefined) return found.rawValue;
      await new Promise((resolve) => setTimeout(resolve, pause));
    }
    return undefined;
  } finally {
    video.srcObject = null;
    for (const track of stream.getTracks()) track.stop();
  }
}
