/** First bytes of a TLS connection, as far as needed to know when a handshake can begin (RFC 8446 §5.1). */

const recordHeader = 5;
const messageHeader = 4;
const handshakeRecord = 22;
const clientHello = 1;

/**
 * Looks for a whole ClientHello, in one record or in several.
 *
 * @returns how many bytes are missing at least, 0 if it has arrived: with fewer there is no need to
 *   look again; `undefined` if the bytes are no ClientHello
 */
export function missingOfClientHello(bytes: Buffer): number | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; at < bytes.length; ) {
    const length = bytes.length - at < recordHeader ? 1 : bytes.readUInt16BE(at + 3);
    if (bytes[at] !== handshakeRecord || length === 0) return undefined;
    const end = at + recordHeader + length;
    parts.push(bytes.subarray(at + recordHeader, end));
    at = end;
  }
  const message = Buffer.concat(parts);
  if (message.length > 0 && message[0] !== clientHello) return undefined;
  if (message.length < messageHeader) return messageHeader - message.length;
  return Math.max(0, messageHeader + message.readUIntBE(1, 3) - message.length);
}
