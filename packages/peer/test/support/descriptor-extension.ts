/** Encodes field 4 of a handshake payload with field 1025, the descriptor; lengths below 128 bytes. */
export function descriptorExtension(descriptor: string): Uint8Array {
  const text = Buffer.from(descriptor);
  if (text.length > 100) throw new TypeError('a short descriptor is enough here');
  const extension = Buffer.concat([Buffer.of(0x8a, 0x40, text.length), text]);
  return Buffer.concat([Buffer.of(0x22, extension.length), extension]);
}
