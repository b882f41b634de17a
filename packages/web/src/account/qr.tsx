import { correction, generate } from 'lean-qr';
import { t } from './text.ts';

/** Light modules around the code, which readers need. */
const margin = 4;

/** A text as a QR code, black on white in either colour scheme: readers expect that. */
export function Qr({ value, label }: { readonly value: string; readonly label: string }) {
  const code = encoded(value);
  if (code === undefined) return <p>{t.tooLong}</p>;
  const { size, get } = code;
  let path = '';
  for (let y = 0; y < size; y += 1) {
    for (let x = 0; x < size; x += 1) {
      // A run of dark modules is one rectangle: fewer elements, and no gaps between them.
      const from = x;
      while (get(x, y)) x += 1;
      if (x > from) path += `M${from} ${y}h${x - from}v1H${from}z`;
    }
  }
  const side = size + 2 * margin;
  return (
    <svg
      class="qr"
      role="img"
      aria-label={t.qrOf(label)}
      viewBox={`${-margin} ${-margin} ${side} ${side}`}
      shape-rendering="crispEdges"
    >
      <path fill="#fff" d={`M${-margin} ${-margin}h${side}v${side}h${-side}z`} />
      <path fill="#000" d={path} />
    </svg>
  );
}

function encoded(value: string) {
  try {
    // The lowest correction: a screen is clean, and fewer modules are easier to read.
    return generate(value, { maxCorrectionLevel: correction.L });
  } catch {
    return undefined;
  }
}
