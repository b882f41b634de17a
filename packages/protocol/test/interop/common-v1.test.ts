import { describe, expect, test } from 'vitest';
import { verifySignatures } from '../../src/crypto/index.ts';
import { base64urlPattern } from '../../src/encoding/base64url.ts';
import {
  checkDeviceState,
  checkEnvelope,
  decodeBase64url,
  decodeVarint,
  deviceStateSignatures,
  deviceStateSigningInput,
  encodeBase64url,
  encodeVarint,
  envelopeSignatures,
  envelopeSigningInput,
  fromHex,
  hex,
  type MessageEnvelope,
  messageAad,
  Network,
  openPayload,
  ProtocolError,
  sha256Text,
  utf8,
} from '../../src/index.ts';
import {
  canonicalJson,
  isJsonObject,
  JsonError,
  type JsonObject,
  type JsonValue,
  parseJson,
} from '../../src/json/index.ts';
import { contentName } from '../../src/messages/content.ts';
import { checkEncryptedPayload } from '../../src/messages/payload.ts';
import { implementations } from '../crypto/implementations.ts';
import { describeVectors, fromBase64, type Interop } from './vectors.ts';

interface CanonicalVector {
  id: string;
  operation: 'canonical_json' | 'network_bound_json';
  input_json: string;
  input_utf8_hex: string;
  expected: {
    canonical_json: string;
    utf8_hex: string;
    utf8_base64: string;
    sha256_hex: string;
    sha256_base64url: string;
    network_bound_json_hash?: string;
  };
}

interface BindingCase {
  name: string;
  operation: 'device_signature' | 'account_signature' | 'local_input';
  input_json: string;
  expected: 'accepted' | 'forbidden_wire_context' | 'context_mismatch';
  nested_protocol_object_paths?: (string | number)[][];
  canonical_json?: string;
  utf8_hex?: string;
  sha256_hex?: string;
}

interface Common {
  canonical_json: {
    vectors: CanonicalVector[];
    rejection_vectors: { id: string; operation: string; input_json: string; expected: string }[];
  };
  base64url: {
    cases: {
      id: string;
      input: string;
      prefix?: string;
      decoded_length?: number;
      expected_accepted: boolean;
      decoded_hex?: string;
    }[];
  };
  unsigned_varint: {
    prefix_cases: {
      id: string;
      input_hex: string;
      expected_accepted: boolean;
      decoded_value_decimal?: string;
    }[];
    length_limit_cases: {
      id: string;
      prefix_case: string;
      max_payload_bytes: number;
      expected_within_limit: boolean;
    }[];
  };
  object_types: {
    supported_content_types: Record<string, string>;
    content_type_cases: {
      name: string;
      input_json: string;
      expected: string;
      expected_preserved_fields?: Record<string, JsonValue>;
    }[];
    signed_envelope: {
      public_key: string;
      envelope: MessageEnvelope;
      cases: {
        name: string;
        type_override?: string;
        remove_type?: boolean;
        expected_signature_valid: boolean;
      }[];
    };
    message_authentication: {
      content_key: string;
      envelope_ref: string;
      plaintext_utf8_hex: string;
      cases: {
        name: string;
        aad_type_override?: string;
        remove_aad_type?: boolean;
        expected_authenticated: boolean;
      }[];
    };
  };
  network_binding: {
    format_cases: { name: string; input: unknown; expected_accepted: boolean }[];
    binding_cases: BindingCase[];
    signature_context: {
      public_key: string;
      envelope_ref: string;
      cases: {
        name: string;
        candidate_network_context: string;
        expected_signature_valid: boolean;
      }[];
    };
  };
  x25519: {
    cases: {
      name: string;
      private_key: string;
      peer_public_key: string;
      expected_raw_shared_secret: string;
      expected_accepted: boolean;
    }[];
  };
  encrypted_payload: {
    input: JsonObject;
    cases: {
      name: string;
      path?: string[];
      remove?: boolean;
      value?: JsonValue;
      expected_valid: boolean;
    }[];
  };
}

type File = Interop<Common>;

describeVectors<Common>('common-v1', (file) => {
  describe('canonical_json', () => canonicalJsonCases(file));
  describe('base64url', () => base64urlCases(file.data.base64url));
  describe('unsigned_varint', () => varintCases(file.data.unsigned_varint));
  describe('object_types', () => {
    contentTypeCases(file);
    for (const [name, primitives] of implementations) {
      const network = file.network(primitives);
      describe(name, () => {
        signedEnvelopeCases(file, network);
        authenticationCases(file, network);
      });
    }
  });
  describe('network_binding', () => {
    formatCases(file);
    bindingCases(file);
    signatureContextCases(file);
  });
  describe('x25519', () => x25519Cases(file));
  describe('encrypted_payload', () => payloadCases(file.data.encrypted_payload));
});

function canonicalJsonCases({ data, network }: File) {
  for (const vector of data.canonical_json.vectors) {
    test(vector.id, () => {
      const { expected } = vector;
      const value = parseJson(vector.input_json) as JsonObject;
      expect(hex(utf8(vector.input_json))).toBe(vector.input_utf8_hex);
      for (const [, primitives] of implementations) {
        const bound = network(primitives);
        const bytes =
          vector.operation === 'canonical_json' ? utf8(canonicalJson(value)) : bound.bytes(value);
        expect(new TextDecoder().decode(bytes)).toBe(expected.canonical_json);
        expect(hex(bytes)).toBe(expected.utf8_hex);
        expect(fromBase64(expected.utf8_base64)).toEqual(new Uint8Array(bytes));
        expect(hex(primitives.sha256(bytes))).toBe(expected.sha256_hex);
        expect(sha256Text(primitives, bytes)).toBe(`sha256:${expected.sha256_base64url}`);
        if (vector.operation === 'network_bound_json') {
          expect(bound.hash(value)).toBe(expected.network_bound_json_hash);
        }
      }
    });
  }
  for (const { id, operation, input_json, expected } of data.canonical_json.rejection_vectors) {
    test(`${id}: rejected`, () => {
      expect([operation, expected]).toEqual(['canonical_json', 'reject']);
      expect(() => parseJson(input_json)).toThrow(JsonError);
    });
  }
}

function base64urlCases({ cases }: Common['base64url']) {
  for (const vector of cases) {
    test(vector.id, () => {
      const { input, prefix, decoded_length, expected_accepted } = vector;
      const rest = prefix === undefined ? input : unprefixed(input, prefix);
      const bytes = rest === undefined ? undefined : decodeBase64url(rest);
      const fits = decoded_length === undefined || bytes?.length === decoded_length;
      expect(bytes !== undefined && fits).toBe(expected_accepted);
      if (expected_accepted) {
        expect(hex(bytes as Uint8Array)).toBe(vector.decoded_hex);
        expect((prefix ?? '') + encodeBase64url(bytes as Uint8Array)).toBe(input);
      }
      if (decoded_length !== undefined) {
        const pattern = new RegExp(base64urlPattern(decoded_length, prefix));
        expect(pattern.test(input)).toBe(expected_accepted);
      }
    });
  }
}

function unprefixed(text: string, prefix: string): string | undefined {
  return text.startsWith(prefix) ? text.slice(prefix.length) : undefined;
}

function varintCases({ prefix_cases, length_limit_cases }: Common['unsigned_varint']) {
  for (const { id, input_hex, expected_accepted, decoded_value_decimal } of prefix_cases) {
    test(id, () => {
      const read = decodeVarint(fromHex(input_hex));
      expect(typeof read === 'object').toBe(expected_accepted);
      if (typeof read !== 'object') return;
      expect(read).toEqual({
        value: BigInt(decoded_value_decimal ?? ''),
        length: input_hex.length / 2,
      });
      expect(hex(encodeVarint(read.value))).toBe(input_hex);
    });
  }
  for (const { id, prefix_case, max_payload_bytes, expected_within_limit } of length_limit_cases) {
    test(id, () => {
      const prefix = prefix_cases.find((vector) => vector.id === prefix_case);
      const read = decodeVarint(fromHex(prefix?.input_hex ?? ''));
      const value = typeof read === 'object' ? read.value : undefined;
      expect(value !== undefined && value <= BigInt(max_payload_bytes)).toBe(expected_within_limit);
    });
  }
}

/** The chapters' names of the supported types, by our names of them. */
const objectNames: Record<string, string> = {
  'account.contacts.sync': 'AccountContactSync',
  'account.group.state.request': 'AccountGroupPrivateStateRequest',
};

function contentTypeCases({ data, network }: File) {
  const { supported_content_types, content_type_cases } = data.object_types;
  test('the supported types are known by the same names', () => {
    for (const [type, object] of Object.entries(supported_content_types)) {
      expect(objectNames[contentName(network(), { $type: type }) ?? '']).toBe(object);
    }
  });
  for (const { name, input_json, expected, expected_preserved_fields } of content_type_cases) {
    test(name, () => {
      const value = parseJson(input_json);
      if (expected === 'invalid_type') {
        expect(codeOf(() => contentName(network(), value))).toBe('bad_request');
        return;
      }
      const found = contentName(network(), value);
      expect(found === undefined ? 'unsupported_type' : objectNames[found]).toBe(expected);
      if (expected_preserved_fields !== undefined) {
        expect(value).toMatchObject(expected_preserved_fields);
      }
    });
  }
}

function signedEnvelopeCases({ data }: File, network: Network) {
  const { public_key, envelope, cases } = data.object_types.signed_envelope;
  for (const { name, type_override, remove_type, expected_signature_valid } of cases) {
    test(`signed envelope: ${name}`, () => {
      const { $type, ...rest } = envelope;
      const typed = remove_type === true ? rest : { ...rest, $type: type_override ?? $type };
      const valid = signatureHolds(network, typed as MessageEnvelope, public_key);
      expect(valid).toBe(expected_signature_valid);
      // The structure is checked first, so the signature is not verified.
      const accepted = codeOf(() => checkEnvelope(network, typed)) === undefined;
      expect(accepted).toBe(expected_signature_valid);
    });
  }
}

function signatureHolds(network: Network, envelope: MessageEnvelope, publicKey: string): boolean {
  const checks = envelopeSignatures(network, envelope, { signing_public_key: publicKey });
  const code = codeOf(() => verifySignatures(network.primitives, checks, 'envelope'));
  expect([undefined, 'invalid_signature']).toContain(code);
  return code === undefined;
}

function authenticationCases({ data, resolve }: File, network: Network) {
  const { content_key, envelope_ref, plaintext_utf8_hex, cases } =
    data.object_types.message_authentication;
  for (const { name, aad_type_override, remove_aad_type, expected_authenticated } of cases) {
    test(`message authentication: ${name}`, () => {
      const envelope = resolve<MessageEnvelope>(envelope_ref);
      const { message_id, created_at, from, from_device_id, to } = envelope;
      const head = { message_id, created_at, from, from_device_id, to };
      const changed = {
        ...head,
        ...(remove_aad_type !== true && {
          $type: aad_type_override ?? network.type('message.aad'),
        }),
      };
      const original = aad_type_override === undefined && remove_aad_type !== true;
      if (original) expect(hex(network.bytes(changed))).toBe(hex(messageAad(network, envelope)));
      const key = decodeBase64url(content_key) as Uint8Array;
      const plaintext = openPayload(network.primitives, envelope.payload, {
        key,
        aad: network.bytes(changed),
      });
      expect(plaintext !== undefined).toBe(expected_authenticated);
      if (plaintext !== undefined) expect(hex(plaintext)).toBe(plaintext_utf8_hex);
    });
  }
}

function formatCases({ data, network }: File) {
  for (const { name, input, expected_accepted } of data.network_binding.format_cases) {
    test(`context format: ${name}`, () => {
      const { word, primitives } = network();
      const build = () => new Network({ context: input as string, word, primitives });
      if (expected_accepted) expect(build().context).toBe(input);
      else expect(build).toThrow(TypeError);
    });
  }
}

function bindingCases({ data, network }: File) {
  for (const vector of data.network_binding.binding_cases) {
    test(`binding: ${vector.name}`, () => {
      const input = parseJson(vector.input_json) as JsonObject;
      for (const path of vector.nested_protocol_object_paths ?? []) {
        const nested = path.reduce<unknown>((value, step) => member(value, step), input);
        expect(isJsonObject(nested) && typeof nested.$type).toBe('string');
      }
      for (const [, primitives] of implementations) {
        const [outcome, bytes] = bind(network(primitives), vector.operation, input);
        expect(outcome).toBe(vector.expected);
        if (bytes === undefined) continue;
        expect(new TextDecoder().decode(bytes)).toBe(vector.canonical_json);
        expect(hex(bytes)).toBe(vector.utf8_hex);
        expect(hex(primitives.sha256(bytes))).toBe(vector.sha256_hex);
      }
    });
  }
}

function member(value: unknown, step: string | number): unknown {
  return (value as Record<string | number, unknown>)[step];
}

/** Builds the input of an operation as the protocol does: check first, then bind. */
function bind(
  network: Network,
  operation: BindingCase['operation'],
  input: JsonObject,
): [BindingCase['expected'], Uint8Array?] {
  if (operation === 'local_input') {
    const { $context, ...rest } = input;
    return $context === network.context ? ['accepted', network.bytes(rest)] : ['context_mismatch'];
  }
  try {
    if (operation === 'device_signature') {
      checkEnvelope(network, input);
      return ['accepted', envelopeSigningInput(network, input)];
    }
    checkDeviceState(network, input);
    verifySignatures(network.primitives, deviceStateSignatures(network, input), 'state');
    return ['accepted', deviceStateSigningInput(network, input)];
  } catch (error) {
    expect(error).toMatchObject({
      code: 'bad_request',
      message: expect.stringContaining('$context is never transmitted'),
    });
    return ['forbidden_wire_context'];
  }
}

function signatureContextCases({ data, network, resolve }: File) {
  const { public_key, envelope_ref, cases } = data.network_binding.signature_context;
  for (const { name, candidate_network_context, expected_signature_valid } of cases) {
    test(`signature context: ${name}`, () => {
      for (const [, primitives] of implementations) {
        const { word } = network();
        const candidate = new Network({ context: candidate_network_context, word, primitives });
        const envelope = resolve<MessageEnvelope>(envelope_ref);
        expect(signatureHolds(candidate, envelope, public_key)).toBe(expected_signature_valid);
      }
    });
  }
}

function x25519Cases({ data }: File) {
  for (const vector of data.x25519.cases) {
    test(vector.name, () => {
      const own = decodeBase64url(vector.private_key) as Uint8Array;
      const peer = decodeBase64url(vector.peer_public_key) as Uint8Array;
      const raw = decodeBase64url(vector.expected_raw_shared_secret) as Uint8Array;
      for (const [, { x25519 }] of implementations) {
        const shared = x25519.shared(own, peer);
        expect(shared !== undefined).toBe(vector.expected_accepted);
        expect(hex(shared ?? new Uint8Array(32))).toBe(hex(raw));
      }
    });
  }
}

function payloadCases({ input, cases }: Common['encrypted_payload']) {
  for (const vector of cases) {
    test(vector.name, () => {
      const value = changed(input, vector);
      const code = codeOf(() => checkEncryptedPayload(value));
      expect(code).toBe(vector.expected_valid ? undefined : 'bad_request');
    });
  }
}

/** The input with the change of a case applied: at its root, or at one of its members. */
function changed(
  input: JsonObject,
  { path, remove, value }: { path?: string[]; remove?: boolean; value?: JsonValue },
): unknown {
  if (path === undefined) return input;
  const [name] = path;
  if (name === undefined) return remove === true ? undefined : value;
  const { [name]: _old, ...rest } = input;
  return remove === true ? rest : { ...rest, [name]: value };
}

function codeOf(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof ProtocolError) return error.code;
    throw error;
  }
}
