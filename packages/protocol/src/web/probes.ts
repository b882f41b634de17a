/** Samples by which a platform's Web Crypto is judged before it is used (01 §5). */
import type { SignatureCheck } from '../crypto/primitives.ts';
import { fromHex, utf8 } from '../encoding/bytes.ts';

/** A signature, and whether it is valid by the chapter. */
interface SignatureProbe extends Omit<SignatureCheck, 'scheme'> {
  readonly isValid: boolean;
}

const mixedKey = fromHex('131604d01865fbedf9f662d25311c68a197cf286f2683724873a147fed6ada35');
const pointR = '16b981d0b88cdf3ab9fa87190822fe4905b475efda3aec7c34abfa92c19320f4';

export const ed25519Probes: readonly SignatureProbe[] = [
  // RFC 8032 §7.1, test 2.
  {
    publicKey: fromHex('3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c'),
    message: fromHex('72'),
    signature: fromHex(
      '92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da' +
        '085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00',
    ),
    isValid: true,
  },
  // Only the equation with the cofactor holds.
  {
    publicKey: fromHex('edc876d6831fd2105d0b4389ca2e283166469289146e2ce06faefe98b22548df'),
    message: utf8('cofactor'),
    signature: fromHex(`${pointR}61bddc8e378338da96fb5053899502beeafdce4bdf83f22578a32f030f4c7d09`),
    isValid: false,
  },
  // The key has a part of small order; the equation does not hold.
  {
    publicKey: mixedKey,
    message: utf8('k0'),
    signature: fromHex(
      'b862409fb5c4c4123df2abf7462b88f041ad36dd6864ce872fd5472be363c5b1' +
        '6452fff79642dc88868e0b244a4dd3181964e6f83e5fbad5894bbeee63332402',
    ),
    isValid: false,
  },
  // Key and R have parts of small order, which cancel out.
  {
    publicKey: mixedKey,
    message: utf8('t0'),
    signature: fromHex(`${pointR}4380b1ced7a9d38891b5068e4a0520fc28d18008096175e81cc697954362f107`),
    isValid: true,
  },
];

const p256Key = fromHex('0360fed4ba255a9d31c961eb74c6356d68c049b8923b61fa6ce669622e60f29fb6');
const numberR = 'efd48b2aacb6a8fd1140dd9cd45e81d69d2c877b56aaf991c34d0ea84eaf3716';

export const p256Probes: readonly SignatureProbe[] = [
  // RFC 6979 §A.2.5: the high `s`, and the low one (S2).
  {
    publicKey: p256Key,
    message: utf8('sample'),
    signature: fromHex(
      `${numberR}f7cb1c942d657c41d436c7a1b6e29f65f3e900dbb9aff4064dc4ab2f843acda8`,
    ),
    isValid: true,
  },
  {
    publicKey: p256Key,
    message: utf8('sample'),
    signature: fromHex(
      `${numberR}0834e36ad29a83bf2bc9385e491d6099c8fdf9d1ed67aa7ea5f51f93782857a9`,
    ),
    isValid: true,
  },
  {
    publicKey: p256Key,
    message: utf8('Sample'),
    signature: fromHex(
      `${numberR}0834e36ad29a83bf2bc9385e491d6099c8fdf9d1ed67aa7ea5f51f93782857a9`,
    ),
    isValid: false,
  },
];

/** RFC 7748 §6.1, with the private key of Bob. */
export const agreementProbe = {
  privateKey: fromHex('5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb'),
  publicKey: fromHex('8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a'),
  shared: fromHex('4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742'),
};
