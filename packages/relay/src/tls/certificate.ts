import { createHash, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isIP, isIPv4 } from 'node:net';
import { ipv6Groups } from '../config/ip-address.ts';
import * as der from './der.ts';

/** Content of an X.509 certificate (RFC 5280). */
export interface CertificateFields {
  readonly subject: string;
  readonly publicKey: KeyObject;
  readonly issuer: { readonly name: string; readonly publicKey: KeyObject };
  /** Unix seconds. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** DNS names and IP addresses of a server; absent for an authority. */
  readonly hosts?: readonly string[];
}

const ecdsaWithSha256 = der.sequence(der.oid('1.2.840.10045.4.3.2'));

/**
 * Issues a certificate in PEM.
 * @param issuerKey P-256 private key of the issuer
 */
export function issueCertificate(fields: CertificateFields, issuerKey: KeyObject): string {
  const toBeSigned = der.sequence(
    der.tagged(0, der.integer(Uint8Array.of(2))),
    der.integer(randomBytes(16)),
    ecdsaWithSha256,
    name(fields.issuer.name),
    der.sequence(der.time(fields.notBefore), der.time(fields.notAfter)),
    name(fields.subject),
    fields.publicKey.export({ format: 'der', type: 'spki' }),
    der.tagged(3, der.sequence(...extensions(fields))),
  );
  const signature = sign('sha256', toBeSigned, issuerKey);
  const certificate = der.sequence(toBeSigned, ecdsaWithSha256, der.bits(signature));
  const lines = certificate.toString('base64').match(/.{1,64}/g) ?? [];
  return ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n');
}

function name(commonName: string): Buffer {
  return der.sequence(der.set(der.sequence(der.oid('2.5.4.3'), der.utf8(commonName))));
}

function extensions({ publicKey, issuer, hosts }: CertificateFields): Buffer[] {
  const subjectKey = extension('2.5.29.14', der.octets(keyIdentifier(publicKey)));
  const authority = der.implicit(0, keyIdentifier(issuer.publicKey));
  const authorityKey = extension('2.5.29.35', der.sequence(authority));
  const basicConstraints = '2.5.29.19';
  const keyUsage = '2.5.29.15';
  if (hosts === undefined) {
    const isAuthority = der.sequence(der.yes(), der.integer(Uint8Array.of(0)));
    const [certSign, crlSign] = [5, 6];
    return [
      extension(basicConstraints, isAuthority, 'critical'),
      extension(keyUsage, der.flags(certSign, crlSign), 'critical'),
      subjectKey,
      authorityKey,
    ];
  }
  const digitalSignature = 0;
  const serverAuth = der.oid('1.3.6.1.5.5.7.3.1');
  return [
    extension(basicConstraints, der.sequence(), 'critical'),
    extension(keyUsage, der.flags(digitalSignature), 'critical'),
    extension('2.5.29.37', der.sequence(serverAuth)),
    extension('2.5.29.17', der.sequence(...hosts.map(alternativeName))),
    subjectKey,
    authorityKey,
  ];
}

function extension(id: string, value: Buffer, critical?: 'critical'): Buffer {
  const mark = critical === undefined ? [] : [der.yes()];
  return der.sequence(der.oid(id), ...mark, der.octets(value));
}

/** SHA-1 of the key's bits: an identifier, not a security measure (RFC 5280, section 4.2.1.2). */
function keyIdentifier(key: KeyObject): Buffer {
  const spki = key.export({ format: 'der', type: 'spki' });
  return createHash('sha1').update(spki.subarray(-65)).digest();
}

function alternativeName(host: string): Buffer {
  return isIP(host) === 0 ? der.implicit(2, Buffer.from(host)) : der.implicit(7, ipBytes(host));
}

function ipBytes(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split('.').map(Number));
  const bytes = Buffer.alloc(16);
  for (const [index, group] of ipv6Groups(address).entries()) bytes.writeUInt16BE(group, index * 2);
  return bytes;
}
