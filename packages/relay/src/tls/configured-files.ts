import { systemClock } from '../clock.ts';
import { certificateHosts } from '../config/addresses.ts';
import type { RelayConfig } from '../config/index.ts';
import { devCertificate } from './dev-ca.ts';
import { readCertificate } from './files.ts';

/** A certificate chain and its private key, PEM. */
export interface TlsFiles {
  readonly cert: string;
  readonly key: string;
}

/** Reads the certificate; its validity is in real time, whatever clock the relay uses. */
export async function tlsFiles(config: RelayConfig): Promise<TlsFiles> {
  const { mode, certificate, key, authority } = config.tls;
  if (mode === 'dev') {
    return devCertificate(config.data, certificateHosts(config), systemClock.now(), {
      authorityFolder: authority,
    });
  }
  return readCertificate(certificate, key);
}
