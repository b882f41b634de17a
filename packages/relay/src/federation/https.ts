/** What requests to other servers have in common: which authorities they trust, and bounded bodies. */
import { X509Certificate } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { createSecureContext, getCACertificates, type SecureContext } from 'node:tls';

/**
 * Makes the TLS context that trusts an authority in addition to those of the system; `undefined` for
 * those of the system alone.
 *
 * @param authority PEM
 * @throws Error if the authority is no PEM certificate
 */
export function trusting(authority: string | undefined): SecureContext | undefined {
  if (authority === undefined) return undefined;
  checkCertificate(authority);
  // Naming one authority would replace those of the system.
  return createSecureContext({ ca: [...getCACertificates('default'), authority] });
}

/** A secure context ignores what is no certificate. */
function checkCertificate(authority: string): void {
  try {
    void new X509Certificate(authority);
  } catch (cause) {
    throw new Error('the file has no certificate in PEM', { cause });
  }
}

/**
 * Reads the body of an answer with status 200, without a content coding.
 *
 * @throws Error for another status, a redirect too, for a coding, for more bytes than `most`, or if the
 *   connection ends early
 */
export async function readBody(response: IncomingMessage, most: number): Promise<Buffer> {
  try {
    const { statusCode, headers } = response;
    if (statusCode !== 200) throw new Error(`answered with status ${statusCode}`);
    const coding = headers['content-encoding'] ?? 'identity';
    if (coding !== 'identity') throw new Error('answered with a content coding');
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of response as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > most) throw new Error(`answered with over ${most} bytes`);
      chunks.push(chunk);
    }
    return Buffer.concat(chunks);
  } finally {
    response.destroy();
  }
}
