import { isIP } from 'node:net';
import { isAbsolute } from 'node:path';
import {
  checkHttpsEndpoint,
  checkRegistryNodes,
  checkText,
  checkWssEndpoint,
  classifyEndpoint,
  limits,
  ProtocolError,
} from '@posthouse/protocol';
import { checkRelayLimits } from '../limit-rules.ts';
import { PublicAddresses } from './public-addresses.ts';
import { isServerUrl, serverUrl } from './redact.ts';
import type { RelayConfig } from './schema.ts';

/**
 * What a configuration is used for: commands on storage or keys need a part of it, a running relay
 * needs all.
 */
export type Purpose = 'storage' | 'keys' | 'descriptor' | 'relay';

/**
 * Checks what the schema cannot express: addresses, and dependencies between settings.
 * @returns one sentence per problem, starting with the setting's path
 */
export function checkConfig(config: RelayConfig, purpose: Purpose): string[] {
  return [
    ...checkRelayLimits(config.limits).map((problem) => `limits.${problem}`),
    ...checkPresence(config, purpose),
    ...checkAddresses(config),
    ...checkStorage(config),
    ...checkOperations(config),
    ...checkBlobs(config),
    ...checkPolicy(config),
    ...checkRegistry(config),
    ...problemsOf(() =>
      checkText(config.name, { maxBytes: limits.relayNameBytes, allowEmpty: false }, 'name'),
    ),
  ];
}

function checkPresence(config: RelayConfig, purpose: Purpose): string[] {
  const { network, dev, tls, public: addresses, listen, operations, federation } = config;
  const problems: string[] = [];
  const missing = (path: string, when: string) =>
    problems.push(`${path}: expected a value ${when}, found none`);
  if (purpose === 'storage') return problems;
  const port = portOf(listen);
  if (network === undefined) missing('network', 'without --dev');
  if (purpose === 'keys') return problems;
  if (addresses.peer === '' && !dev) missing('public.peer', 'without --dev');
  if (purpose === 'relay' && tls.mode === 'files') {
    if (tls.certificate === '') missing('tls.certificate', 'in mode files');
    if (tls.key === '') missing('tls.key', 'in mode files');
  }
  if (tls.authority !== '' && tls.mode !== 'dev') {
    problems.push(`tls.mode: expected dev because tls.authority is set, found "${tls.mode}"`);
  }
  // For port 0, only the running relay knows its port.
  if (purpose === 'descriptor' && port === 0 && !(addresses.https.length > 0 && addresses.peer)) {
    problems.push(`listen: expected a port, found ${JSON.stringify(listen)}`);
  }
  if (tls.mode === 'off' && addresses.https.length === 0)
    missing('public.https', 'because tls.mode is off');
  if (addresses.https.length === 0 && /^(?:0\.0\.0\.0|\[::\]):/.test(listen)) {
    missing('public.https', 'because listen covers every address');
  }
  if (addresses.wss.length > 0 && addresses.https.length === 0) {
    missing('public.https', 'because public.wss has one');
  }
  for (const [path, address] of [
    ['listen', listen],
    ['operations.listen', operations.listen],
    ['federation.listen', federation.listen],
  ] as const) {
    if (portOf(address) <= 65_535) continue;
    problems.push(`${path}: expected a port up to 65535, found ${JSON.stringify(address)}`);
  }
  return problems;
}

/** Returns the port of an address; 0 for an empty one. */
function portOf(address: string): number {
  return Number(address.replace(/^.*:/, ''));
}

function checkStorage({ storage, bus }: RelayConfig): string[] {
  const problems: string[] = [];
  if (storage.engine === 'postgres' && storage.url === '') {
    problems.push('storage.url: expected a value for the engine postgres, found none');
  }
  if (storage.engine === 'sqlite' && storage.url !== '') {
    problems.push('storage.engine: expected postgres because storage.url is set, found "sqlite"');
  }
  if (storage.engine === 'sqlite' && bus.nats !== '') {
    problems.push('bus.nats: expected storage.engine postgres with it; SQLite is for one process');
  }
  for (const [path, url] of [
    ['storage.url', storage.url],
    ['bus.nats', bus.nats],
  ] as const) {
    if (url !== '' && !isServerUrl(url)) problems.push(`${path}: expected ${serverUrl}`);
  }
  return problems;
}

/** The token must not pass over a network in the clear. */
function checkOperations({ operations, tls }: RelayConfig): string[] {
  const { listen, adminTokenFile } = operations;
  const problems: string[] = [];
  if (operations.tls && tls.mode === 'off') {
    problems.push('operations.tls: expected false because tls.mode is off, found true');
  }
  const isExposed = listen !== '' && !/^(?:127\.[0-9.]+|localhost|\[::1\]):/.test(listen);
  if (adminTokenFile !== '' && isExposed && !operations.tls) {
    problems.push(
      'operations.tls: expected true because operations.adminTokenFile is set and operations.listen is not on loopback, found false',
    );
  }
  return problems;
}

function checkPolicy({ policy: { command } }: RelayConfig): string[] {
  const [path] = command;
  if (path === undefined || isAbsolute(path)) return [];
  return [`policy.command: expected an absolute path as its first text, found ${path}`];
}

function checkBlobs({ blobs }: RelayConfig): string[] {
  if (blobs.folder === '') return [];
  const tooSmall = (['accountBytes', 'totalBytes'] as const).filter(
    (name) => blobs[name] < blobs.maxBytes,
  );
  return tooSmall.map(
    (name) => `blobs.${name}: expected blobs.maxBytes or more, found ${blobs[name]}`,
  );
}

function checkRegistry({ registry }: RelayConfig): string[] {
  if (typeof registry === 'string') {
    // Not shown: it has the nodes' keys.
    if (!/^\s*(?:\{|\w+:\/\/)/.test(registry)) return [];
    return ['registry: expected a path, or nodes as {"nodes":["https://…"]} in valid JSON'];
  }
  const unknown = Object.keys(registry).filter((name) => !['nodes', 'agree'].includes(name));
  return [
    ...unknown.map((name) => `registry.${name}: there is no such key`),
    ...problemsOf(() => checkRegistryNodes(registry, 'registry')),
  ];
}

function checkAddresses({ public: addresses, trustedProxies }: RelayConfig): string[] {
  const { https, wss, peer } = addresses;
  const problems = [
    ...https.flatMap((address) => problemsOf(() => checkHttpsEndpoint(address, 'public.https'))),
    ...wss.flatMap((address) => problemsOf(() => checkWssEndpoint(address, 'public.wss'))),
    ...trustedProxies
      .filter((proxy) => !isSubnet(proxy))
      .map(
        (proxy) => `trustedProxies: expected an address or subnet, found ${JSON.stringify(proxy)}`,
      ),
  ];
  if (problems.length === 0)
    problems.push(...problemsOf(() => void new PublicAddresses(https, wss)));
  if (peer !== '' && !isPeerAddress(peer)) {
    const found = JSON.stringify(peer);
    problems.push(`public.peer: expected an address like /dns4/<host>/tcp/<port>, found ${found}`);
  }
  return problems;
}

/** Checks a peer address without its Peer ID, which the relay appends itself. */
function isPeerAddress(address: string): boolean {
  const anyPeer = '12D3KooWD3eckifWpRn9wQpMG9R9hX3sD158z7EqHWmweQAJU5SA';
  try {
    return classifyEndpoint(`${address}/p2p/${anyPeer}`).kind === 'libp2p';
  } catch {
    return false;
  }
}

function isSubnet(text: string): boolean {
  const [address = '', prefix, ...rest] = text.split('/');
  const family = isIP(address);
  if (family === 0 || rest.length > 0) return false;
  if (prefix === undefined) return true;
  return /^(?:0|[1-9][0-9]{0,2})$/.test(prefix) && Number(prefix) <= (family === 4 ? 32 : 128);
}

function problemsOf(check: () => void): string[] {
  try {
    check();
    return [];
  } catch (error) {
    if (error instanceof ProtocolError || error instanceof TypeError) return [error.message];
    throw error;
  }
}
