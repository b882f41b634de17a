import { X509Certificate } from 'node:crypto';
import { isIP } from 'node:net';
import { readCertificate } from '../../tls/files.ts';
import { validityOf } from './certificate-validity.ts';
import { type Check, failed, ok, skipped } from './check.ts';

/** Whether the files of `tls` are a certificate and its key, for the public name, and for how long. */
export const certificateFiles: Check = {
  name: 'certificate files',
  scope: 'local',
  needs: ['configuration'],
  cure: 'correct `tls.certificate` and `tls.key`',
  async find({ config }) {
    const { mode, certificate, key } = config.tls;
    if (mode === 'dev') return skipped('tls.mode is dev: the relay makes its certificate itself');
    if (mode === 'off') return skipped('tls.mode is off: the proxy has the certificate');
    const { cert } = await readCertificate(certificate, key);
    const read = new X509Certificate(cert);
    for (const address of config.public.https) {
      const host = new URL(address).hostname.replace(/^\[|\]$/g, '');
      const isFor = isIP(host) === 0 ? read.checkHost(host) : read.checkIP(host);
      if (isFor !== undefined) continue;
      return failed(
        `${certificate}: is not for ${host}, which public.https names`,
        `get a certificate for ${host}, or correct public.https`,
      );
    }
    const validity = validityOf(certificate, read.validToDate);
    return validity.outcome === 'ok' ? ok(`${validity.seen}, with its key`) : validity;
  },
};
