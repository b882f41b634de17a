/** Bytes that one mark of JSON stands for in memory, rounded up from what was measured. */
const bytesOfMark: Readonly<Record<string, number>> = { '[': 160, '{': 80, ',': 32, ':': 48 };

const bytesOfByte = new Uint8Array(256);
for (const [mark, bytes] of Object.entries(bytesOfMark)) bytesOfByte[mark.charCodeAt(0)] = bytes;

/**
 * Returns the bytes that a JSON text takes once it is read, beyond its own: about as many again for
 * its strings, and so many for each value. Marks in strings count too; texts of the protocol have few.
 */
export function parsedBytes(text: Uint8Array): number {
  const { length } = text;
  let sum = length;
  for (let index = 0; index < length; index += 1) {
    sum += bytesOfByte[text[index] as number] as number;
  }
  return sum;
}
