import { readFile } from 'node:fs/promises';
import { createSecureContext } from 'node:tls';
import { requirePrivate } from '../keys/keys.ts';

/** A certificate chain and its key, as PEM texts. */
export interface CertificateFiles {
  readonly cert: string;
  readonly key: string;
}

/**
 * Reads and checks an operator's certificate and key.
 * @throws Error with the setting and the file
 */
export async function readCertificate(
  certificatePath: string,
  keyPath: string,
): Promise<CertificateFiles> {
  await requirePrivate(keyPath, 'tls.key names it');
  const key = await readFile(keyPath, 'utf8');
  const cert = await readFile(certificatePath, 'utf8').catch((error: unknown) => {
    throw new Error(`${certificatePath}: cannot be read, tls.certificate names it`, {
      cause: error,
    });
  });
  check({ cert }, `${certificatePath}: expected a PEM certificate chain, tls.certificate names it`);
  check({ key }, `${keyPath}: expected a PEM private key without passphrase, tls.key names it`);
  check(
    { cert, key },
    `${keyPath}: is not the key of ${certificatePath}: let tls.key and tls.certificate name a pair`,
  );
  return { cert, key };
}

function check(files: Partial<CertificateFiles>, message: string): void {
  try {
    // An empty text, as of a file that is being written, would count as none.
    if (Object.values(files).includes('')) throw new Error('the file is empty');
    createSecureContext(files);
  } catch (error) {
    throw new Error(message, { cause: error });
  }
}
