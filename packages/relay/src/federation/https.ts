/** What requests to other servers have in common: which authorities they trust, and bounded bodies. */
import { X509Certificate } from 'node:crypto';
import type { ClientRequest, IncomingMessage } from 'node:http';
import { finished } from 'node:stream/promises';
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

/** Answers with status 1xx before the final one, of one request. */
const interimAnswers = 8;

/** Pieces of a body of which each may be as small as it is. */
const freePieces = 256;
/** Bytes of those after them, on average: Node makes an object of some 200 bytes of each. */
const pieceBytes = 64;

/**
 * Ends a request that gets no final answer: interim ones without end, which count for no limit of headers
 * or body, or a change of the protocol (status 101), after which Node reports nothing more.
 */
export function requireFinalAnswer(sent: ClientRequest, refuse: (error: Error) => void): void {
  let count = 0;
  sent.on('information', () => {
    count += 1;
    if (count !== interimAnswers + 1) return;
    // Before the error of the connection, which is another one if the connection was kept.
    refuse(new Error('answered with interim answers only'));
    sent.destroy();
  });
  sent.on('upgrade', (_, socket) => {
    socket.destroy();
    refuse(new Error('answered with another protocol'));
  });
}

/**
 * Reads the body of an answer with status 200, without a content coding.
 *
 * @throws Error for another status, a redirect too, for a coding, for more bytes than `most`, for
 *   pieces (chunks, records of TLS) that are very small, or if the connection ends early
 */
export async function readBody(response: IncomingMessage, most: number): Promise<Buffer> {
  try {
    const { statusCode, headers } = response;
    if (statusCode !== 200) throw new Error(`answered with status ${statusCode}`);
    const coding = headers['content-encoding'] ?? 'identity';
    if (coding !== 'identity') throw new Error('answered with a content coding');
    return await readPieces(response, most);
  } finally {
    response.destroy();
  }
}

/** An iteration would be given many pieces as one, after Node has made an object of each. */
async function readPieces(response: IncomingMessage, most: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  response.on('data', (piece: Buffer) => {
    if (response.destroyed) return;
    bytes += piece.length;
    pieces.push(piece);
    const isMany = pieces.length > freePieces + bytes / pieceBytes;
    if (bytes > most) response.destroy(new Error(`answered with over ${most} bytes`));
    else if (isMany) response.destroy(new Error('answered in very small pieces'));
  });
  await finished(response);
  return Buffer.concat(pieces);
}
