"""The words of a query that say nothing about what it asks for."""

STOP_WORDS = """
    a about above after again all am an and any are as at be because been being below between both but by can could did
    do does doing down during each few for from further had has have having he her here hers him his how i if in into is
    it its itself just me more most my no nor not now of off on once only or other our out over own please s same she
    should so some such t than that the their them then there these they this those through to too under until up very
    was we were what when where which while who whom why will with would you your d ll m re ve
"""
PUNCTUATION = """ ! " # $ % & ' ( ) * + , - . / : ; < = > ? @ [ \\ ] ^ _ ` { | } ~ """
