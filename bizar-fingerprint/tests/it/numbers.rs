//! Numbers as ECMAScript writes them, and 64-bit integers exactly, on every path.

use bizar_fingerprint::{
    ErrorKind, canonical_from_serialize, canonical_from_text, canonical_from_value,
};
use serde_json::Value;

/// Canonical text of a JSON number, the same from text, value and serialize.
#[track_caller]
fn number(json: &str) -> String {
    let value: Value = serde_json::from_str(json).unwrap();
    let text = canonical_from_text(json).unwrap();
    assert_eq!(
        text,
        canonical_from_value(&value).unwrap(),
        "{json} as a value"
    );
    assert_eq!(
        text,
        canonical_from_serialize(&value).unwrap(),
        "{json} serialised"
    );
    String::from_utf8(text).unwrap()
}

fn double(bits: u64) -> String {
    let value = f64::from_bits(bits);
    let text = String::from_utf8(canonical_from_serialize(&value).unwrap()).unwrap();
    assert_eq!(number(&format!("{value:e}")), text, "read back");
    text
}

#[test]
fn doubles_print_as_the_samples_of_rfc_8785() {
    for (bits, text) in [
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
    ] {
        assert_eq!(double(bits), text, "{bits:016x}");
    }
}

#[test]
fn fp_07_only_exact_ties_go_to_the_even_digit() {
    for (bits, text) in [
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        (0x42e4_0fce_9707_9e1c, "176464984554736.88"),
        (0x431b_9180_a34a_8f19, "1939951513150406.2"),
        (0x431b_1911_46bd_696f, "1906846590786139.8"),
        (0xc2db_fec8_a208_1be8, "-123124406820975.62"),
        (0x427f_b72b_dcfe_d480, "2179473461229.2812"),
    ] {
        assert_eq!(double(bits), text, "{bits:016x}");
    }
}

#[test]
fn fp_08_exponents_and_minus_zero_are_those_of_ecmascript() {
    for (json, text) in [
        ("1e-6", "0.000001"),
        ("1e-7", "1e-7"),
        ("2.9514790517935283e+20", "295147905179352830000"),
        ("-0.0", "0"),
        ("-0", "0"),
        ("-0e9", "0"),
        ("1e21", "1e+21"),
        ("1e20", "100000000000000000000"),
        ("1.0", "1"),
        ("1.00", "1"),
        ("10e-1", "1"),
        ("4.50", "4.5"),
        ("2e-3", "0.002"),
        ("1E30", "1e+30"),
        ("0.000000000000000000000000001", "1e-27"),
        ("123e-20", "1.23e-18"),
        ("123.456", "123.456"),
        ("1e-999", "0"),
        ("1.000000000000000005", "1"),
    ] {
        assert_eq!(number(json), text, "{json}");
    }
}

#[test]
fn fp_10_integral_doubles_are_read_to_the_last_bit() {
    assert_eq!(number("9007199254740991.0"), "9007199254740991");
    assert_eq!(number("9007199254740993.0"), "9007199254740992");
    assert_eq!(number("0.1"), "0.1");
}

#[test]
fn fp_05_large_ids_differ() {
    assert_eq!(number("9007199254740992"), "9007199254740992");
    assert_eq!(number("9007199254740993"), "9007199254740993");
    assert_eq!(number("-9007199254740993"), "-9007199254740993");
}

#[test]
fn fp_06_one_rule_for_both_signs() {
    assert_eq!(number("1152921504606846976"), "1152921504606846976");
    assert_eq!(number("-9223372036854775808"), "-9223372036854775808");
    assert_eq!(number("9223372036854775807"), "9223372036854775807");
    assert_eq!(number("9223372036854775808"), "9223372036854775808");
    assert_eq!(number("18446744073709551615"), "18446744073709551615");
    // Beyond 64 bits an integer is a double, on both sides.
    assert_eq!(number("-9223372036854775809"), "-9223372036854776000");
    assert_eq!(number("18446744073709551616"), "18446744073709552000");
    assert_eq!(number("18446744073709551617"), "18446744073709552000");
    assert_eq!(number("10000000000000000999"), "10000000000000000999");
    assert_eq!(number("100000000000000000000"), "100000000000000000000");
    assert_eq!(number(&format!("1{}", "0".repeat(300))), "1e+300");
}

#[test]
fn integers_of_128_bits_are_exact_as_far_as_64_bits_go() {
    let text = |value: Vec<u8>| String::from_utf8(value).unwrap();
    assert_eq!(
        text(canonical_from_serialize(&i128::from(u64::MAX)).unwrap()),
        "18446744073709551615"
    );
    assert_eq!(
        text(canonical_from_serialize(&i128::from(i64::MIN)).unwrap()),
        "-9223372036854775808"
    );
    assert_eq!(
        text(canonical_from_serialize(&(i128::from(i64::MIN) - 1)).unwrap()),
        "-9223372036854776000"
    );
    assert_eq!(
        text(canonical_from_serialize(&(u128::from(u64::MAX) + 1)).unwrap()),
        "18446744073709552000"
    );
    assert_eq!(
        text(canonical_from_serialize(&u128::MAX).unwrap()),
        "3.402823669209385e+38"
    );
}

#[test]
fn a_number_beyond_a_double_is_an_error_that_says_where() {
    for (json, offset) in [
        ("1e400", 0),
        ("[1,-1E+309]", 3),
        (r#"{"a":{"b":2e999}}"#, 10),
    ] {
        let error = canonical_from_text(json).unwrap_err();
        assert_eq!(
            (error.kind(), error.offset()),
            (ErrorKind::NumberTooLarge, Some(offset)),
            "{json}"
        );
    }
}

#[cfg(feature = "arbitrary_precision")]
#[test]
fn a_value_may_hold_a_number_beyond_a_double_and_then_is_an_error_with_a_pointer() {
    let value: Value = serde_json::from_str(r#"{"a":[1,1e400]}"#).unwrap();
    for error in [
        canonical_from_value(&value).unwrap_err(),
        canonical_from_serialize(&value).unwrap_err(),
    ] {
        assert_eq!(
            error.to_string(),
            "number beyond the range of a double at /a/1"
        );
    }
}
