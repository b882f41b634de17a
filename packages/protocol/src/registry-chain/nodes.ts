import { utf8Length } from '../encoding/bytes.ts';
import { badRequest } from '../errors.ts';
import { checkSchema, memberPath, type Static, Type } from '../schema.ts';

/** Most nodes that one reader uses. */
const maxNodes = 8;

/** Bytes of a node's URL; those with keys in them are long. */
const maxUrlBytes = 2_048;

/** The nodes through which the registry on the chain is read (07 §A6), from trusted configuration. */
export const RegistryNodes = Type.Object({
  /** JSON-RPC addresses: `https`, or `http` on this machine. Tried in order. */
  nodes: Type.Array(Type.String(), { minItems: 1, maxItems: maxNodes }),
  /** How many nodes must have the same record before it counts as active; 1 by default. */
  agree: Type.Optional(Type.Union([Type.Literal(1), Type.Literal(2)])),
});
export type RegistryNodes = Static<typeof RegistryNodes>;

/**
 * Checks a list of nodes: at most eight different URLs, and two hosts if two nodes must agree.
 * Errors name the position, not the URL, which can contain a key.
 *
 * @throws ProtocolError `bad_request`
 * @example
 * checkRegistryNodes({ nodes: ['https://node.example:10331'], agree: 1 });
 */
export function checkRegistryNodes(value: unknown, path = ''): asserts value is RegistryNodes {
  checkSchema(RegistryNodes, value, path);
  const { nodes, agree = 1 } = value;
  const at = memberPath(path, 'nodes');
  for (const [index, node] of nodes.entries()) checkNodeUrl(node, memberPath(at, index));
  if (new Set(nodes).size < nodes.length) throw badRequest(at, 'repeats a node');
  if (new Set(nodes.map(hostOf)).size < agree) {
    throw badRequest(at, 'has one host only: two nodes that agree need two hosts');
  }
}

/** Scheme, host and port of a node's URL: what may appear in logs. */
export function originOf(url: string): string {
  return new URL(url).origin;
}

/** Whose opinion a node is: ports of one host are one, but on this machine, where each is a node. */
export function hostOf(url: string): string {
  const { hostname, host } = new URL(url);
  return isLoopback(hostname) ? host : hostname.replace(/\.$/, '');
}

function checkNodeUrl(text: string, path: string): void {
  const fail = (reason: string) => badRequest(path, `node ${reason}`);
  if (utf8Length(text) > maxUrlBytes) throw fail(`has a URL over ${maxUrlBytes} bytes`);
  if (!/^https?:\/\/[^\s\\#]+$/.test(text) || !URL.canParse(text)) {
    throw fail('is not a URL that begins with https://');
  }
  const { protocol, hostname, username, password } = new URL(text);
  // Browsers refuse such URLs, and logs would show the password.
  if (username !== '' || password !== '') throw fail('has a user name or password in its URL');
  if (protocol === 'http:' && !isLoopback(hostname)) {
    throw fail('must have https://, except on this machine');
  }
}

function isLoopback(hostname: string): boolean {
  return hostname === 'localhost' || hostname === '[::1]' || /^127(?:\.[0-9]+){3}$/.test(hostname);
}
