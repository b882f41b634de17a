import { once } from 'node:events';
import { isIP } from 'node:net';
import { connect } from 'node:tls';
import { validityOf } from './certificate-validity.ts';
import { type Check, failed, notRunning } from './check.ts';

/** Whether the certificate of the public name is one that others accept, and for how long. */
export const publicCertificate: Check = {
  name: 'public certificate',
  scope: 'network',
  needs: ['descriptor'],
  cure: 'let the name in public.https lead to the running relay',
  async find(relay, signal) {
    // If a proxy has the certificate, it is there without the relay.
    if (!relay.isRunning && relay.config.tls.mode !== 'off') return notRunning;
    const { hostname, port } = new URL(await relay.endpoint);
    const host = hostname.replace(/^\[|\]$/g, '');
    const secureContext = await relay.secureContext;
    // Nothing is sent: the certificate is read, and judged here.
    const socket = connect({
      ...{
        host,
        port: Number(port || 443),
        rejectUnauthorized: false,
        lookup: relay.filter.lookup,
      },
      ...(isIP(host) === 0 && { servername: host }),
      ...(secureContext !== undefined && { secureContext }),
    });
    try {
      await once(socket, 'secureConnect', { signal });
      const { valid_to: until } = socket.getPeerCertificate();
      const validity = validityOf(host, new Date(until));
      const refused = socket.authorizationError as Error | string | null | undefined;
      if (validity.outcome === 'failed' || socket.authorized) return validity;
      const reason = refused instanceof Error ? refused.message : String(refused);
      return failed(
        `${host}: other relays and clients refuse the certificate: ${reason}`,
        'use a certificate for this name from an authority that others trust, with the whole chain; for a private network set federation.ca',
      );
    } finally {
      socket.destroy();
    }
  },
};
