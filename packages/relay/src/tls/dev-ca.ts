/**
 * Certificates for development: an authority per data folder or of several relays, and a server
 * certificate for the hosts the relay listens on. Clients trust `DIR/tls/ca.pem`; the machine's own
 * store is not changed.
 */
import {
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  X509Certificate,
} from 'node:crypto';
import { readFile, rename, writeFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import { join } from 'node:path';
import { requirePrivate } from '../keys/keys.ts';
import { makeFolder } from '../make-folder.ts';
import { issueCertificate } from './certificate.ts';

const day = 86_400;
/** Seconds that certificates are valid, and that must remain when the relay starts. */
const authority = { period: 3_650 * day, left: 365 * day };
const server = { period: 90 * day, left: 30 * day };

export interface ServerCertificate {
  /** PEM, server certificate first. */
  readonly cert: string;
  /** PEM, PKCS #8. */
  readonly key: string;
  /** Path of the authority's certificate, which clients trust. */
  readonly authorityFile: string;
}

/**
 * Returns the server certificate for these hosts; issues a new one if it is missing, expires soon, or
 * is for other hosts.
 *
 * @param now Unix seconds
 * @param authorityFolder where {@link devAuthority} stores the authority; by default the folder of the
 *   server certificate
 */
export async function devCertificate(
  dataFolder: string,
  hosts: readonly string[],
  now: number,
  { authorityFolder = '' }: { readonly authorityFolder?: string } = {},
): Promise<ServerCertificate> {
  const folder = join(dataFolder, 'tls');
  makeFolder(folder);
  const { pair: issuer, file } = await loadAuthority(authorityFolder || folder, now);
  const stored = await loadPair(folder, 'server');
  const usable =
    stored !== undefined && isFor(stored, issuer, hosts) && lasts(stored, now + server.left);
  const pair = usable ? stored : newServer(issuer, hosts, now);
  if (!usable) await storePair(folder, 'server', pair);
  return { ...pair, authorityFile: file };
}

/**
 * Creates the authority in a folder if there is none or it expires soon. If several relays share the
 * folder, call this before they start: two relays that find no authority would each create one.
 *
 * @param now Unix seconds
 * @returns path of its certificate
 */
export async function devAuthority(folder: string, now: number): Promise<string> {
  return (await loadAuthority(folder, now)).file;
}

async function loadAuthority(folder: string, now: number): Promise<{ pair: Pair; file: string }> {
  makeFolder(folder);
  const stored = await loadPair(folder, 'ca');
  const usable = stored !== undefined && lasts(stored, now + authority.left);
  const pair = usable ? stored : newAuthority(now);
  if (!usable) await storePair(folder, 'ca', pair);
  return { pair, file: join(folder, 'ca.pem') };
}

/** A certificate and its private key, in PEM. */
interface Pair {
  readonly cert: string;
  readonly key: string;
}

const authorityName = 'Posthouse development authority';

function newAuthority(now: number): Pair {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const fields = {
    subject: authorityName,
    publicKey,
    issuer: { name: authorityName, publicKey },
    notBefore: now - day,
    notAfter: now + authority.period,
  };
  return { cert: issueCertificate(fields, privateKey), key: pem(privateKey) };
}

function newServer(issuer: Pair, hosts: readonly string[], now: number): Pair {
  const { publicKey, privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
  const issuerKey = createPrivateKey(issuer.key);
  const fields = {
    subject: hosts[0] ?? 'localhost',
    publicKey,
    issuer: { name: authorityName, publicKey: createPublicKey(issuerKey) },
    // Clocks of development machines may differ a little.
    notBefore: now - day,
    notAfter: now + server.period,
    hosts,
  };
  return { cert: issueCertificate(fields, issuerKey), key: pem(privateKey) };
}

function pem(key: ReturnType<typeof createPrivateKey>): string {
  return key.export({ format: 'pem', type: 'pkcs8' }) as string;
}

function lasts({ cert }: Pair, until: number): boolean {
  return new X509Certificate(cert).validToDate.getTime() >= until * 1_000;
}

function isFor({ cert }: Pair, issuer: Pair, hosts: readonly string[]): boolean {
  const certificate = new X509Certificate(cert);
  return (
    certificate.verify(createPublicKey(createPrivateKey(issuer.key))) &&
    hosts.every((host) =>
      isIP(host) === 0 ? certificate.checkHost(host) : certificate.checkIP(host),
    )
  );
}

async function loadPair(folder: string, name: string): Promise<Pair | undefined> {
  let cert: string;
  try {
    cert = await readFile(join(folder, `${name}.pem`), 'utf8');
  } catch {
    return undefined;
  }
  const keyFile = join(folder, `${name}.key`);
  await requirePrivate(keyFile, `remove ${folder} to have all of it created again`);
  return { cert, key: await readFile(keyFile, 'utf8') };
}

/** Stores a pair, the key first, so that every stored certificate has its key. */
async function storePair(folder: string, name: string, { cert, key }: Pair): Promise<void> {
  await replaceFile(join(folder, `${name}.key`), key, 0o600);
  await replaceFile(join(folder, `${name}.pem`), cert, 0o644);
}

async function replaceFile(path: string, content: string, mode: number): Promise<void> {
  await writeFile(`${path}.new`, content, { mode });
  await rename(`${path}.new`, path);
}
