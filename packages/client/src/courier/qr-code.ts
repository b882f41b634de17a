/** Draws text as a QR code for a terminal. */
import { correction, generate } from 'lean-qr';
import { UsageError } from './exit.ts';

/** Light modules around the code, which readers need. */
const margin = 2;

/**
 * Draws a QR code: two modules in a character, light ones as blocks, for a dark terminal. Readers
 * accept a code in inverted colours, too.
 *
 * @returns one line for every two rows
 * @throws UsageError if the text is too long
 */
export function qrCode(text: string): string[] {
  const { size, get } = encode(text);
  const isLight = (x: number, y: number) => !get(x, y);
  const lines: string[] = [];
  for (let y = -margin; y < size + margin; y += 2) {
    let line = '';
    for (let x = -margin; x < size + margin; x += 1) {
      line += blocks[Number(isLight(x, y)) * 2 + Number(isLight(x, y + 1))];
    }
    lines.push(line);
  }
  return lines;
}

/** By what is light: nothing, the lower half, the upper half, both. */
const blocks = [' ', '\u2584', '\u2580', '\u2588'];

function encode(text: string) {
  try {
    // The lowest correction: a screen is clean, and fewer modules are easier to read.
    return generate(text, { maxCorrectionLevel: correction.L });
  } catch {
    throw new UsageError(`--qr: ${text.length} characters are too many for a QR code`);
  }
}
