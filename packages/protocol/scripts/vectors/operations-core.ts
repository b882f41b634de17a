/** Operations on texts, keys and the network itself. */
import type { SignatureCheck } from '../../src/crypto/index.ts';
import { base64urlPattern } from '../../src/encoding/base64url.ts';
import { isOnlyWhitespace } from '../../src/encoding/whitespace.ts';
import { scriptHash } from '../../src/identity/account-id.ts';
import { parseNetworkContext } from '../../src/identity/network.ts';
import {
  checkAccountId,
  checkSchema,
  decodeVarint,
  deriveAccountId,
  deriveRelayId,
  encodeBase64url,
  encodeVarint,
  fromHex,
  hex,
  ProtocolError,
  RelayId,
  relayOrigin,
  utf8Length,
} from '../../src/index.ts';
import {
  canonicalJson,
  decodeUtf8,
  diagnoseEnvelope,
  type JsonObject,
  parseJson,
} from '../../src/json/index.ts';
import { bytes, input, type Operation, operation } from './operation.ts';

export const encoding: Record<string, Operation> = {
  'json.parse': operation<{ text?: string; hex?: string }>((_network, given) => {
    const text = given.text ?? decodeUtf8(fromHex(given.hex ?? ''));
    return { canonical: canonicalJson(parseJson(text)) };
  }),
  'rpc.fault': operation<{ text: string }>((_network, { text }) => ({ ...diagnoseEnvelope(text) })),
  'base64url.decode': operation<{ text: string }>((_network, { text }) => ({
    hex: hex(bytes(text)),
  })),
  'base64url.fixed': operation<{ text: string; prefix: string; bytes: number }>(
    (_network, { text, prefix, bytes: length }) => {
      if (!new RegExp(base64urlPattern(length, prefix)).test(text)) {
        throw new ProtocolError('bad_request', 'not this value');
      }
      return { hex: hex(bytes(text.slice(prefix.length))) };
    },
  ),
  'varint.decode': operation<{ hex: string }>((_network, given) => {
    const read = decodeVarint(fromHex(given.hex));
    if (typeof read === 'string') return { error: read };
    return {
      value: read.value.toString(),
      length: read.length,
      again: hex(encodeVarint(read.value)),
    };
  }),
  'text.measure': operation<{ text: string }>((_network, { text }) => ({
    utf8_bytes: utf8Length(text),
    only_whitespace: isOnlyWhitespace(text),
  })),
};

export const crypto: Record<string, Operation> = {
  'signature.verify': operation<{
    scheme: SignatureCheck['scheme'];
    public_key: string;
    message_hex: string;
    signature: string;
  }>((network, { scheme, public_key, message_hex, signature }) => ({
    valid: network.primitives[scheme].verify(
      bytes(public_key),
      fromHex(message_hex),
      bytes(signature),
    ),
  })),
  'signature.make': operation<{
    scheme: SignatureCheck['scheme'];
    private_key: string;
    message_hex: string;
  }>((network, { scheme, private_key, message_hex }) => {
    const { publicKey, sign } = network.primitives[scheme];
    return {
      public_key: encodeBase64url(publicKey(bytes(private_key))),
      signature: encodeBase64url(sign(bytes(private_key), fromHex(message_hex))),
    };
  }),
  'x25519.shared': operation<{ private_key: string; public_key: string }>((network, keys) => {
    const { x25519 } = network.primitives;
    const shared = x25519.shared(bytes(keys.private_key), bytes(keys.public_key));
    return shared === undefined ? { error: 'all_zero' } : { shared: encodeBase64url(shared) };
  }),
};

export const network: Record<string, Operation> = {
  'network.context': operation<{ text: string }>((_network, { text }) => ({
    ...(parseNetworkContext(text) ?? { error: 'invalid' }),
  })),
  'network.bind': operation<{ object: JsonObject; omit?: string[] }>((net, { object, omit }) => {
    const message = net.bytes(object, omit);
    return { ...input(net, message), hash: net.hash(object, omit) };
  }),
  'network.names': operation<{ type: string; salt: string }>((net, { type, salt }) => ({
    type: net.type(type),
    salt: hex(net.salt(salt)),
    path_prefix: net.pathPrefix,
    session_header: net.sessionHeader,
  })),
  'account.derive': operation<{ public_key: string }>((net, { public_key }) => ({
    script_hash: hex(scriptHash(net.primitives, bytes(public_key))),
    account: deriveAccountId(net, public_key),
    relay_id: deriveRelayId(net, public_key),
  })),
  'account.check': operation<{ account: string }>((net, { account }) => {
    checkAccountId(net, account);
    return {};
  }),
  'relay_id.check': operation<{ relay_id: string }>((_network, { relay_id }) => {
    checkSchema(RelayId, relay_id);
    return {};
  }),
  'origin.derive': operation<{ endpoint: string }>((_network, { endpoint }) => ({
    origin: relayOrigin(endpoint),
  })),
};
