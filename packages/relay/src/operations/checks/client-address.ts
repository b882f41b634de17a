import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { isIP } from 'node:net';
import { networkInterfaces } from 'node:os';
import { readBody } from '../../federation/index.ts';
import {
  checkPath,
  checkProofHeader,
  makeCheckProof,
  type SeenRequest,
} from '../../keys/check-proof.ts';
import { type Check, type Finding, failed, notRunning, ok, skipped } from './check.ts';
import type { CheckedRelay } from './checked-relay.ts';
import { type ProxyHeaders, proxyLines } from './proxy-lines.ts';

/** An address of documentation (RFC 5737), which no client has. */
const invented = '192.0.2.1';

const most = 4_096;

/**
 * Whether the relay sees the addresses of clients, by which it limits them: a proxy must say them, be
 * in `trustedProxies`, and not let clients choose them.
 */
export const clientAddress: Check = {
  name: 'client address',
  scope: 'network',
  needs: ['descriptor', 'public descriptor'],
  cure: 'let the name in public.https lead to the running relay',
  async find(relay, signal) {
    if (!relay.isRunning) return notRunning;
    const response = await ask(relay, signal);
    if (response.statusCode === 400 || response.statusCode === 404) {
      response.destroy();
      return skipped('the running relay has no answer to this: it is of an older version');
    }
    const { headers, statusCode } = response;
    if (statusCode !== 200) {
      response.destroy();
      return failed(
        `the public address answers with status ${statusCode}`,
        'let the proxy pass on what is below the base address, and try again later',
      );
    }
    const seen = JSON.parse((await readBody(response, most)).toString()) as SeenRequest;
    const own = Object.values(networkInterfaces()).flatMap((all) => all ?? []);
    return clientAddressFinding(seen, {
      ...{ isBehindProxy: relay.config.tls.mode === 'off', headers },
      own: new Set(own.map(({ address }) => address)),
    });
  },
};

/** Asks with a header that a client could invent. */
async function ask(relay: CheckedRelay, signal: AbortSignal): Promise<IncomingMessage> {
  const { checkSecret } = await relay.identity;
  const url = new URL(`${await relay.endpoint}${checkPath}`);
  const host = url.hostname.replace(/^\[|\]$/g, '');
  const secureContext = await relay.secureContext;
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  request(url, {
    agent: false,
    lookup: relay.filter.lookup,
    ...(isIP(host) === 0 && { servername: host }),
    ...(secureContext !== undefined && { secureContext }),
    headers: {
      'accept-encoding': 'identity',
      'x-forwarded-for': invented,
      [checkProofHeader]: makeCheckProof(checkSecret, relay.clock.now()),
    },
    signal,
  })
    .on('response', resolve)
    .on('error', reject)
    .end();
  return await promise;
}

/**
 * Judges what the relay saw of a request with an invented `X-Forwarded-For`.
 *
 * @param how.isBehindProxy whether the relay leaves TLS to a proxy
 * @param how.own addresses of the machine that asked, which may be that of a trusted proxy too
 */
export function clientAddressFinding(
  { peer, is_trusted: isTrusted, client, forwarded }: SeenRequest,
  how: {
    readonly isBehindProxy: boolean;
    readonly headers: ProxyHeaders;
    readonly own: ReadonlySet<string>;
  },
): Finding {
  const lines = proxyLines('address', how.headers);
  const said = forwarded?.split(',').at(-1)?.trim() ?? '';
  if (isTrusted && (said === invented || (client === invented && !how.own.has(said)))) {
    return failed(
      `clients choose the address that limits count: the proxy at ${peer} passes their X-Forwarded-For on`,
      `let the proxy replace it. ${lines}`,
    );
  }
  if (isTrusted) {
    if (isIP(said) !== 0) return ok(`the proxy at ${peer} says the addresses of clients: ${said}`);
    return failed(
      `the proxy at ${peer} does not say the addresses of clients, so all of them share one limit`,
      `let the proxy say them. ${lines}`,
    );
  }
  // A relay that clients reach directly sees the header as it was sent.
  if (!how.isBehindProxy && forwarded === invented) {
    return ok(`clients connect without a proxy; the relay sees ${peer}`);
  }
  return failed(
    `the relay does not trust the proxy at ${peer}, so all its clients share one limit`,
    `add "${peer}" to trustedProxies, and let the proxy say the addresses of clients. ${lines}`,
  );
}
